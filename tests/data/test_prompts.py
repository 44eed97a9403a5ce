"""Prompts: every row is checked, all complaints come at once, and nothing is dropped unsaid."""

from __future__ import annotations

import hashlib
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from miniverl.data.packaged import resource
from miniverl.data.prompts import file_sha256, read_prompts
from miniverl.data.template import ChatTemplate
from miniverl.errors import DataError


@pytest.fixture(scope="module")
def template() -> ChatTemplate:
    return ChatTemplate(resource("miniverl://tiny-student"))


def user(text):
    return [{"role": "user", "content": text}]


def write(path: Path, prompts, **columns) -> Path:
    pq.write_table(pa.Table.from_pydict({"prompt": prompts, **columns}), path)
    return path


def read(*files, template, **changes):
    asked = {"prompt_key": "prompt", "max_prompt_length": 16, "truncation": "error", "filter_overlong_prompts": False}
    return read_prompts(files, template=template, **{**asked, **changes})


def texts(found, template):
    return [template.decode(prompt.ids.tolist(), skip_special_tokens=False) for prompt in found.prompts]


def test_the_packaged_files_are_read_whole(template):
    found = read(resource("miniverl://sums/heldout.parquet"), template=template)
    assert len(found.prompts) == 1024 and found.notes == ()
    assert [prompt.row for prompt in found.prompts] == list(range(1024))
    assert {prompt.data_source for prompt in found.prompts} == {"miniverl/sums"}
    for text, prompt in zip(texts(found, template), found.prompts, strict=True):
        a, b = text.removeprefix("<user>").removesuffix("<assistant>").split("+")
        assert prompt.ground_truth == str(int(a) + int(b))


def test_rows_are_counted_over_all_files(template, tmp_path):
    first, second = write(tmp_path / "a.parquet", [user("1+1")] * 2), write(tmp_path / "b.parquet", ["2+2", "3+3"])
    found = read(first, second, template=template)
    assert [prompt.row for prompt in found.prompts] == [0, 1, 2, 3]
    assert texts(found, template)[1:3] == ["<user>1+1<assistant>", "<user>2+2<assistant>"]
    bad = write(tmp_path / "c.parquet", ["1", ""])
    with pytest.raises(DataError, match=r"row 3 \(c.parquet, row 1\): message 0 \(user\) is empty"):
        read(first, bad, template=template)


def test_the_answer_comes_from_the_reward_model_else_from_the_extra_info(template, tmp_path):
    file = write(
        tmp_path / "a.parquet",
        ["1", "2", "3"],
        reward_model=[{"ground_truth": "one"}, {"ground_truth": None}, None],
        extra_info=[{"answer": 1}, {"answer": 2}, None],
    )
    assert [prompt.ground_truth for prompt in read(file, template=template).prompts] == ["one", "2", None]
    listed = write(tmp_path / "b.parquet", ["1"], reward_model=[{"ground_truth": ["1", "one"]}])
    assert read(listed, template=template).prompts[0].ground_truth == '["1","one"]'
    bare = write(tmp_path / "c.parquet", ["1"])
    assert read(bare, template=template).prompts[0].ground_truth is None


def test_the_digest_follows_prompts_and_answers_and_nothing_else(template, tmp_path):
    def digest(name, prompts, answers, **columns):
        truths = [{"ground_truth": answer} for answer in answers]
        file = write(tmp_path / f"{name}.parquet", prompts, reward_model=truths, **columns)
        return read(file, template=template).digest

    plain = digest("a", ["1", "2"], ["3", "4"])
    assert digest("b", [user("1"), user("2")], ["3", "4"], data_source=["x", "y"]) == plain
    assert digest("c", ["2", "1"], ["3", "4"]) != plain
    assert digest("d", ["1", "2"], ["3", "5"]) != plain
    assert digest("e", ["1", "22"], ["3", "4"]) != plain


@pytest.mark.parametrize(
    ("cell", "problem", "fix"),
    [
        ([{"role": "User", "content": "1"}], "message 0 has the role 'User'", "in lower case"),
        ([{"from": "human", "value": "1"}], "message 0 has the ShareGPT fields", "rename from to role"),
        ([*user("1"), {"role": "assistant", "content": "2"}], "ends with an assistant turn", "reward_model"),
        (user([{"type": "text", "text": "1"}]), "message 0 (user) has content of type list", "plain text"),
        (None, "is of type NoneType", "messages of role and content"),
        (user("123456789+123456789"), "has 21 tokens after the chat template, 16 are", "data.max_prompt_length"),
    ],
)
def test_a_row_that_would_become_another_task_is_refused_by_number(cell, problem, fix, template, tmp_path):
    file = write(tmp_path / "a.parquet", [None, cell])
    with pytest.raises(DataError) as refusal:
        read(file, template=template)
    assert f"\n  row 1: {problem}" in refusal.value.problem
    assert fix in refusal.value.fix and str(file) in refusal.value.field


def test_all_complaints_come_at_once_ten_shown_and_the_rest_counted(template, tmp_path):
    cells = ["1" if index % 2 else "" for index in range(26)]
    file = write(tmp_path / "a.parquet", [user(cell) for cell in cells])
    with pytest.raises(DataError) as refusal:
        read(file, template=template)
    said = str(refusal.value)
    assert "13 of 26 rows" in said and "and 3 more" in said
    assert [f"row {row}:" in said for row in (0, 2, 18)] == [True] * 3 and "row 20:" not in said
    assert said.count("write the question") == 1


def test_what_the_template_refuses_is_a_complaint_like_any_other(template, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    source = resource("miniverl://tiny-student")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())
    (folder / "chat_template.jinja").write_text(
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}"
    )
    file = write(tmp_path / "a.parquet", [user("1"), [{"role": "system", "content": "2"}, *user("1")]])
    with pytest.raises(DataError, match=r"1 of 2 rows(.|\n)*row 1: cannot render these messages \(no system\)"):
        read(file, template=ChatTemplate(folder))


def test_fields_that_parquet_left_empty_are_not_shown_to_the_template(template, tmp_path):
    named = [{"role": "user", "content": "1", "name": None}]
    assert texts(read(write(tmp_path / "a.parquet", [named]), template=template), template) == ["<user>1<assistant>"]


@pytest.mark.parametrize(("side", "left_over"), [("left", "45<assistant>"), ("right", "<user>12")])
def test_a_cut_prompt_keeps_the_other_side_and_is_counted(side, left_over, template, tmp_path):
    file = write(tmp_path / "a.parquet", ["1", "12345"])
    found = read(file, template=template, truncation=side, max_prompt_length=3)
    assert texts(found, template) == ["<user>1<assistant>", left_over]
    assert found.notes == (f"1 of 2 prompts of {file} are over 3 tokens: cut on the {side} (data.truncation)",)


def test_a_dropped_prompt_is_counted_and_the_rest_keep_their_row_numbers(template, tmp_path):
    file = write(tmp_path / "a.parquet", ["12345", "1", "12345", "2"])
    found = read(file, template=template, filter_overlong_prompts=True, max_prompt_length=3)
    assert [prompt.row for prompt in found.prompts] == [1, 3]
    dropped = f"2 of 4 prompts of {file} are over 3 tokens: dropped (data.filter_overlong_prompts)"
    assert found.notes == (dropped,)


def test_a_set_without_a_prompt_is_refused(template, tmp_path):
    with pytest.raises(DataError, match="hold no row"):
        read(write(tmp_path / "a.parquet", pa.array([], pa.string())), template=template)
    with pytest.raises(DataError, match=r"all 2 rows are over 2 tokens and were dropped; raise data.max_prompt_length"):
        read(
            write(tmp_path / "b.parquet", ["12", "34"]),
            template=template,
            filter_overlong_prompts=True,
            max_prompt_length=2,
        )


def test_a_missing_column_names_those_that_exist_and_the_nearest(template, tmp_path):
    file = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pydict({"prompts": ["1"], "answer": ["2"]}), file)
    with pytest.raises(DataError, match=r"data.prompt_key = 'prompt': .*prompts, answer; did you mean prompts?"):
        read(file, template=template)


def test_a_file_that_cannot_be_read_is_named(template, tmp_path):
    with pytest.raises(DataError, match=r"gone.parquet: is missing"):
        read(tmp_path / "gone.parquet", template=template)
    with pytest.raises(DataError, match=f"{tmp_path}: cannot be read"):
        read(tmp_path, template=template)
    text = tmp_path / "text.parquet"
    text.write_text('{"prompt": "1"}')
    with pytest.raises(DataError, match=r"text.parquet: cannot be read"):
        read(text, template=template)


@pytest.mark.parametrize("part", [0.0, 0.3, 0.7, 0.999])
def test_a_truncated_file_is_refused_wherever_it_was_cut(part, template, tmp_path):
    whole = resource("miniverl://sums/heldout.parquet").read_bytes()
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(DataError, match=r"cut.parquet: cannot be read"):
        read(cut, template=template)


def test_a_file_damaged_inside_is_refused(template, tmp_path):
    whole = bytearray(resource("miniverl://sums/train.parquet").read_bytes())
    whole[4:2000] = bytes(1996)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(whole)
    with pytest.raises(DataError, match=r"damaged.parquet: cannot be read"):
        read(damaged, template=template)


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a") == hashlib.sha256(b"abc").hexdigest()
    with pytest.raises(DataError, match="is missing"):
        file_sha256(tmp_path / "b")


def broken_text(*cells):
    """A string column that holds bytes as they are, whether they are UTF-8 or not."""
    column = pa.array(cells, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(column), column.buffers())


def test_text_that_is_not_utf8_is_refused_by_row(template, tmp_path):
    with pytest.raises(DataError, match=r"1 of 2 rows(.|\n)*row 1: prompt cannot be read"):
        read(write(tmp_path / "a.parquet", broken_text(b"1", b"\xff")), template=template)
    with pytest.raises(DataError, match=r"row 0: data_source cannot be read"):
        read(write(tmp_path / "b.parquet", ["1"], data_source=broken_text(b"\xff")), template=template)
    truths = pa.StructArray.from_arrays([broken_text(b"1", b"\xff")], ["ground_truth"])
    with pytest.raises(DataError, match=r"row 1: reward_model.ground_truth cannot be read"):
        read(write(tmp_path / "c.parquet", ["1", "2"], reward_model=truths), template=template)


def test_what_lies_beside_the_answer_need_not_be_readable(template, tmp_path):
    times = pa.array([1], pa.timestamp("ns"))
    extra = pa.StructArray.from_arrays([pa.array(["7"]), times, broken_text(b"\xff")], ["answer", "when", "text"])
    assert (
        read(write(tmp_path / "a.parquet", ["1"], extra_info=extra), template=template).prompts[0].ground_truth == "7"
    )


@pytest.mark.parametrize(
    "truth", [[float("nan")], [datetime(2020, 1, 1)], [b"1"], [Decimal("1.5")], b"1"], ids=lambda truth: repr(truth)
)
def test_an_answer_that_has_no_text_is_refused_by_row(truth, template, tmp_path):
    file = write(tmp_path / "a.parquet", ["1"], reward_model=[{"ground_truth": truth}])
    with pytest.raises(DataError, match="row 0: has a ground truth that cannot be written as JSON"):
        read(file, template=template)


def test_prompts_the_tokenizer_has_no_tokens_for_are_counted(template, tmp_path):
    found = read(write(tmp_path / "a.parquet", ["1+1", "why?!", "1=1"]), template=template)
    assert [note.split(" prompts of")[0] for note in found.notes] == ["1 of 3"]
    assert "mostly the unknown token" in found.notes[0]
