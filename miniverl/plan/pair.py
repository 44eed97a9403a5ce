"""This file holds the checks of a student and a teacher together: one tokenizer, united ends, enough positions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from miniverl.errors import ConfigError, ModelError
from miniverl.plan.identity import ModelFolder


def refuse_two_tokenizers(student: ModelFolder, teacher: ModelFolder) -> None:
    """The teacher judges ids, so an id must mean one thing to both. Ends, padding and templates may differ."""
    if student.tokenizer_digest == teacher.tokenizer_digest:
        return
    ours, theirs = _tokens(student.path), _tokens(teacher.path)
    differing = sum(ours.get(token) != theirs.get(token) for token in ours.keys() | theirs.keys())
    what = f"{differing} tokens differ" if differing else "the merges differ, with the same tokens"
    raise ModelError(
        "models.teacher.id",
        value=teacher.id,
        problem=f"does not have the tokenizer of models.student.id = {student.id!r}: {what} "
        f"({len(ours)} tokens there, {len(theirs)} here)",
        fix="choose a teacher of the student's own family",
    )


def refuse_long_sequences(model: ModelFolder, *, field: str, prompt: int, response: int) -> None:
    if model.positions is None or prompt + response <= model.positions:
        return
    raise ConfigError(
        "rollout.max_new_tokens",
        value=response,
        problem=f"with data.max_prompt_length {prompt} a sequence may have {prompt + response} tokens; {field} = "
        f"{model.id!r} has positions for {model.positions}",
        fix=f"lower the two limits to {model.positions} together",
    )


def stop_token_ids(student: ModelFolder, teacher: ModelFolder) -> tuple[int, ...]:
    """Sorted union of both models' end ids: a base student must be able to learn to stop as its teacher does."""
    union = tuple(sorted({*student.end_ids, *teacher.end_ids}))
    if not union:
        raise ModelError(
            "models.student.id",
            value=student.id,
            problem="neither student nor teacher names an end id, so no response would ever end",
            fix="set eos_token_id in generation_config.json of the student",
        )
    return union


def vocabulary(student: ModelFolder, teacher: ModelFolder) -> int:
    """Ids that take part in distributions: those the tokenizer can produce, at most the smaller head."""
    return min(student.vocabulary, student.head, teacher.head)


def differences(student: ModelFolder, teacher: ModelFolder) -> Iterator[str]:
    """What is allowed to differ, and does, in words."""
    ends = (student.end_ids, teacher.end_ids)
    if ends[0] != ends[1]:
        union = list(stop_token_ids(student, teacher))
        yield f"end ids differ (student {list(ends[0])}, teacher {list(ends[1])}): responses end at any of {union}"
    if student.template.digest != teacher.template.digest:
        yield "chat templates differ: prompts are written with the student's"
    if student.head != teacher.head:
        used = vocabulary(student, teacher)
        yield f"heads differ (student {student.head} rows, teacher {teacher.head}): both are read up to id {used - 1}"
    if student.vocabulary > vocabulary(student, teacher):
        yield (
            f"the tokenizer has ids up to {student.vocabulary - 1}, the smaller head only up to "
            f"{vocabulary(student, teacher) - 1}: those beyond are never drawn"
        )


def _tokens(folder: Path) -> dict[str, int]:
    """Text -> id of tokenizer.json, added tokens included."""
    found = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = found["model"].get("vocab", {})
    if isinstance(vocab, list):  # unigram: pairs of text and score, the id being the position
        vocab = {entry[0]: index for index, entry in enumerate(vocab)}
    return {**vocab, **{token["content"]: token["id"] for token in found.get("added_tokens", ())}}
