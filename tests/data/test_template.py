"""The chat template: the same ids as transformers gives, and complaints that name the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import AutoTokenizer

from miniverl.data.packaged import resource
from miniverl.data.template import ChatTemplate
from miniverl.errors import DataError, ModelError

CHATML = """{%- for message in messages %}
    {%- if loop.first and message.role != 'system' %}
        {{- '<|im_start|>system\nYou are terse.<|im_end|>\n' }}
    {%- endif %}
    {%- if message.role == 'tool' %}{% continue %}{% endif %}
    {{- '<|im_start|>' + message.role + '\n' }}{% generation %}{{ message.content | trim }}{% endgeneration %}
    {{- eos_token + '\n' }}
{%- endfor %}
{%- if tools %}
    {{- tools | tojson }}
{%- endif %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
"""

CONVERSATIONS = [
    [{"role": "user", "content": "12+345"}],
    [{"role": "system", "content": "1 2"}, {"role": "user", "content": " 7 + 8 "}],
    [
        {"role": "user", "content": "1+1"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "<x> & 'é' 2+2"},
    ],
]


def write_chatml(folder: Path, *, bos: bool = True, **settings) -> Path:
    """A byte-level tokenizer with merges, whose post-processor adds a token that chats must not get twice."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "e"), ("te", "r"), ("u", "s"), ("us", "er"), ("e", "r")]
    vocabulary = {token: index for index, token in enumerate([*alphabet, "te", "ter", "us", "er", "user"])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[pair for pair in merges if "".join(pair) in vocabulary]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True) for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", tokenizer.token_to_id("<|endoftext|>"))]
    )
    tokenizer.enable_truncation(max_length=4)
    tokenizer.enable_padding(length=64, pad_id=0, pad_token="!")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    written = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps({**written, **settings}))
    (folder / "chat_template.jinja").write_text(CHATML)
    return folder


@pytest.fixture
def chatml(tmp_path) -> Path:
    return write_chatml(tmp_path / "chatml")


@pytest.fixture
def tiny() -> Path:
    return resource("miniverl://tiny-student")


@pytest.mark.parametrize("name", ["tiny", "chatml"])
@pytest.mark.parametrize("messages", CONVERSATIONS)
def test_messages_become_the_ids_transformers_gives(name, messages, request):
    folder = request.getfixturevalue(name)
    theirs = AutoTokenizer.from_pretrained(folder)
    ours = ChatTemplate(folder)
    assert ours.render(messages) == theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    ids = theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
    assert ours.encode(messages) == ids
    for skip in (True, False):
        assert ours.decode(ids, skip_special_tokens=skip) == theirs.decode(ids, skip_special_tokens=skip)
    assert ours.vocabulary == len(theirs)
    assert ours.end_ids == (theirs.eos_token_id,)


def test_a_prompt_of_the_tiny_pair_ends_where_the_answer_begins(tiny):
    template = ChatTemplate(tiny)
    assert template.render(CONVERSATIONS[0]) == "<user>12+345<assistant>"
    assert len(template.encode([{"role": "user", "content": "123+456"}])) == 9


def test_a_character_the_tokenizer_does_not_know_leaves_a_trace(tiny):
    template = ChatTemplate(tiny)
    ids = template.encode([{"role": "user", "content": "1×2"}])
    assert template.decode(ids, skip_special_tokens=False) == "<user>1<unk>2<assistant>"


def test_a_template_that_raises_is_an_error_in_its_own_words(tiny):
    with pytest.raises(DataError, match="the roles are system, user and assistant"):
        ChatTemplate(tiny).render([{"role": "tool", "content": "1"}])


def test_a_template_does_not_learn_the_date(chatml):
    (chatml / "chat_template.jinja").write_text("{{ strftime_now('%Y') if strftime_now is defined else 'always' }}")
    assert ChatTemplate(chatml).render(CONVERSATIONS[0]) == "always"


def test_a_template_cannot_reach_into_the_interpreter(chatml):
    (chatml / "chat_template.jinja").write_text("{{ messages.__class__.__mro__ }}")
    with pytest.raises(DataError, match="cannot render"):
        ChatTemplate(chatml).render(CONVERSATIONS[0])


def test_the_file_wins_over_the_settings_and_default_over_its_siblings(chatml):
    named = [{"name": "tool_use", "template": "tool"}, {"name": "default", "template": "plain"}]
    write_chatml(chatml, chat_template=named)
    assert ChatTemplate(chatml).render(CONVERSATIONS[0]).startswith("<|im_start|>system")
    (chatml / "chat_template.jinja").unlink()
    assert ChatTemplate(chatml).render(CONVERSATIONS[0]) == "plain"


def test_end_padding_and_template_may_differ_under_one_tokenizer_digest(tmp_path):
    instruct = ChatTemplate(write_chatml(tmp_path / "instruct"))
    base = write_chatml(tmp_path / "base", eos_token="<|endoftext|>", pad_token="<|im_end|>")
    (base / "chat_template.jinja").write_text("{{ messages[0].content }}")
    assert ChatTemplate(base).tokenizer_digest == instruct.tokenizer_digest
    assert ChatTemplate(base).digest != instruct.digest
    assert ChatTemplate(base).end_ids != instruct.end_ids


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file["model"]["vocab"].update(extra=900),
        lambda file: file["model"]["merges"].pop(),
        lambda file: file["added_tokens"].append({**file["added_tokens"][-1], "id": 900, "content": "<extra>"}),
    ],
    ids=["vocabulary", "merges", "added tokens"],
)
def test_another_vocabulary_merge_or_added_token_is_another_tokenizer(chatml, change):
    before = ChatTemplate(chatml).tokenizer_digest
    file = json.loads((chatml / "tokenizer.json").read_text())
    change(file)
    (chatml / "tokenizer.json").write_text(json.dumps(file))
    assert ChatTemplate(chatml).tokenizer_digest != before


def test_merges_written_in_the_older_way_are_the_same_tokenizer(chatml):
    before = ChatTemplate(chatml).tokenizer_digest
    file = json.loads((chatml / "tokenizer.json").read_text())
    file["model"]["merges"] = [" ".join(pair) for pair in file["model"]["merges"]]
    (chatml / "tokenizer.json").write_text(json.dumps(file))
    assert ChatTemplate(chatml).tokenizer_digest == before


def test_end_ids_are_united_over_the_files_of_a_model(chatml):
    (chatml / "config.json").write_text(json.dumps({"text_config": {"eos_token_id": 7}}))
    (chatml / "generation_config.json").write_text(json.dumps({"eos_token_id": [9, 3]}))
    assert ChatTemplate(chatml).end_ids == (3, 7, 9, 263)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json: is missing; name a folder"),
        (lambda folder: (folder / "tokenizer.json").write_text('{"model"'), "tokenizer.json: cannot be read"),
        (lambda folder: (folder / "tokenizer.json").write_text('{"model": {}}'), "describes no tokenizer"),
        (lambda folder: (folder / "tokenizer_config.json").write_text("[]"), "tokenizer_config.json: holds no JSON"),
        (lambda folder: (folder / "chat_template.jinja").unlink(), "has no chat template.*; copy chat_template.jinja"),
        (lambda folder: (folder / "chat_template.jinja").write_text("{% if %}"), "has a syntax error"),
    ],
)
def test_a_missing_or_damaged_file_is_named_with_its_fix(chatml, spoil, said):
    spoil(chatml)
    with pytest.raises(ModelError, match=said):
        ChatTemplate(chatml)


def test_an_end_token_that_is_no_token_is_refused(chatml):
    write_chatml(chatml, eos_token="<stop>")
    with pytest.raises(ModelError, match="eos_token = '<stop>': is no token"):
        _ = ChatTemplate(chatml).end_ids


@pytest.mark.parametrize(
    "text",
    ["{{ 1 // (messages | length - 1) }}", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{{ {}['a'].b.c }}"],
)
def test_a_template_that_fails_while_it_runs_is_an_error(chatml, text):
    (chatml / "chat_template.jinja").write_text(text)
    with pytest.raises(DataError, match="cannot render"):
        ChatTemplate(chatml).render(CONVERSATIONS[0])


def _settings(**changes):
    return lambda folder: write_chatml(folder, **changes)


def _listed(*entries):
    def damage(folder):
        write_chatml(folder, chat_template=list(entries))
        (folder / "chat_template.jinja").unlink()

    return damage


def _folder(folder):
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.jinja").mkdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda folder: _rewrite(folder, lambda file: file["model"].update(merges=[["q", "nothing"]])),
            "is refused by",
        ),
        (lambda folder: _rewrite(folder, lambda file: file.update(decoder=7)), "is refused by"),
        (lambda folder: (folder / "chat_template.jinja").write_bytes(b"\xff"), "chat_template.jinja: cannot be read"),
        (_folder, "chat_template.jinja: cannot be read"),
        (_listed({"name": "default"}), "has no chat template"),
        (_listed("default"), "has no chat template"),
        (_listed({"name": "default", "template": "\udcff"}), "syntax error"),
        (_settings(eos_token={}), "eos_token = {}"),
        (_settings(eos_token=3), "eos_token = 3"),
    ],
)
def test_damaged_files_are_refused_by_name(chatml, damage, words):
    damage(chatml)
    with pytest.raises(ModelError, match=words):
        ChatTemplate(chatml)


def _rewrite(folder, change):
    described = json.loads((folder / "tokenizer.json").read_text())
    change(described)
    (folder / "tokenizer.json").write_text(json.dumps(described))


@pytest.mark.parametrize("found", ["x", 1.5, True, -1, [1, None], {}])
def test_an_end_that_is_no_id_is_refused(chatml, found):
    (chatml / "config.json").write_text(json.dumps({"eos_token_id": found}))
    with pytest.raises(ModelError, match=r"config.json: eos_token_id = .*is no id"):
        _ = ChatTemplate(chatml).end_ids


def test_an_empty_text_model_names_no_end(chatml):
    (chatml / "config.json").write_text(json.dumps({"text_config": None}))
    template = ChatTemplate(chatml)
    assert template.decode(template.end_ids, skip_special_tokens=False) == "<|im_end|>"


def test_only_a_tokenizer_that_cannot_write_everything_has_an_unknown_token(tiny, chatml):
    assert ChatTemplate(tiny).decode([ChatTemplate(tiny).unknown_id], skip_special_tokens=False) == "<unk>"
    assert ChatTemplate(chatml).unknown_id is None
