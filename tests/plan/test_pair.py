"""A student and a teacher, looked at together."""

from __future__ import annotations

import json

import pytest

from miniverl.errors import ModelError
from miniverl.plan.identity import identify
from miniverl.plan.pair import differences, refuse_two_tokenizers, stop_token_ids, vocabulary


@pytest.fixture
def model(new_model):
    return lambda name, **facts: identify(str(new_model(name, **facts)), field="models.student.id")


def test_equal_tokenizers_pass_whatever_else_differs(model):
    student, teacher = model("s"), model("t", eos_token_id=[3], vocab_size=50)
    refuse_two_tokenizers(student, teacher)
    assert stop_token_ids(student, teacher) == (3, 12)
    assert len(list(differences(student, teacher))) == 2


def test_a_pair_without_differences_has_nothing_to_say(model):
    assert list(differences(model("s"), model("t", weight=1.0))) == []


@pytest.mark.parametrize(("tokens", "count"), [("0123456789+-", 2), ("1023456789+=", 2), ("0123456789+=*", 3)])
def test_another_tokenizer_is_refused_with_the_count_of_tokens_that_differ(model, tokens, count):
    """A token in one only, two ids exchanged, and a token that moves the end ids along."""
    with pytest.raises(ModelError, match=f": {count} tokens differ"):
        refuse_two_tokenizers(model("s"), model("t", tokens=tokens))


def test_templates_that_differ_are_said(model, tmp_path):
    student = model("s")
    teacher = model("t")
    (teacher.path / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    teacher = identify(str(teacher.path), field="models.teacher.id")
    assert list(differences(student, teacher)) == ["chat templates differ: prompts are written with the student's"]


def test_the_vocabulary_is_what_the_tokenizer_and_both_heads_have(model):
    assert vocabulary(model("s"), model("t", vocab_size=100)) == 14
    small = model("u", vocab_size=13)
    assert vocabulary(model("s"), small) == 13
    assert any("only up to 12" in note for note in differences(model("s"), small))


def test_models_that_never_end_are_refused(model):
    student = model("s")
    for name in ("config.json",):
        settings = json.loads((student.path / name).read_text())
        del settings["eos_token_id"]
        (student.path / name).write_text(json.dumps(settings))
    student = identify(str(student.path), field="models.student.id")
    with pytest.raises(ModelError, match="no response would ever end"):
        stop_token_ids(student, student)
