"""This file holds PromptSet: the usable prompts of some Parquet files, every row of them checked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from miniverl.contract.canonical import canonical_json, json_digest
from miniverl.contract.prompt import Prompt
from miniverl.data.conversation import Complaint, conversation
from miniverl.data.template import ChatTemplate
from miniverl.errors import DataError

SHOWN = 10
"""Complaints shown in one error; the rest are counted."""

ANSWERS: Mapping[str, str] = {"reward_model": "ground_truth", "extra_info": "answer"}
"""verl's columns that may hold the ground truth, the first first, and its name in there."""

READ_COLUMNS = ("data_source", *ANSWERS)
"""verl's columns that are used where a file has them, beside the prompt's own."""

UNREADABLE = (OSError, ValueError, OverflowError, KeyError, pa.ArrowException)
"""What reading a damaged file, or a cell of it, can raise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromptSet:
    """What a run may ask, in file order."""

    prompts: tuple[Prompt, ...]
    """At least one."""
    notes: tuple[str, ...]
    """What was dropped or cut, counted; empty when every row is used as it stands."""

    @property
    def digest(self) -> str:
        """SHA-256 over the digests of the prompts and their ground truths, in order."""
        return json_digest([[prompt.digest, prompt.ground_truth] for prompt in self.prompts])


def read_prompts(
    files: Sequence[Path | str],
    *,
    template: ChatTemplate,
    prompt_key: str,
    max_prompt_length: int,
    truncation: str,
    filter_overlong_prompts: bool,
) -> PromptSet:
    """The prompts of all rows of ``files``, as ids of at most ``max_prompt_length`` tokens.

    A prompt over the limit is dropped and counted when ``filter_overlong_prompts``; else ``truncation`` decides: error
    refuses, left drops its first tokens, right its last ones, counted. Raises one DataError with all complaints, by
    row; also for a file that cannot be read, lacks the column, or leaves no prompt.
    """
    assert truncation in ("error", "left", "right"), truncation
    limit = _Limit(tokens=max_prompt_length, truncation=truncation, drops=filter_overlong_prompts)
    prompts: list[Prompt] = []
    complaints: list[tuple[str, Complaint]] = []
    rows = dropped = cut = unknown = 0
    for where, row in _rows(files, prompt_key):
        try:
            ids = template.encode(conversation(row.messages()))
            kept = limit.apply(ids)
            truth, source = row.truth(), row.source()
        except Complaint as complaint:
            complaints.append((where, complaint))
        except DataError as refusal:  # the template's own
            complaints.append((where, Complaint(refusal.problem, refusal.fix)))
        else:
            dropped += kept is None
            cut += kept is not None and len(kept) < len(ids)
            if kept is not None:
                prompts.append(Prompt(row=rows, ids=np.array(kept), data_source=source, ground_truth=truth))
                unknown += 2 * sum(number == template.unknown_id for number in kept) > len(kept)
        rows += 1
    if complaints:
        raise _refusal(files, rows, complaints)
    if not prompts:
        raise _empty(files, rows, dropped, max_prompt_length)
    return PromptSet(
        prompts=tuple(prompts), notes=_notes(files, rows, limit, dropped=dropped, cut=cut, unknown=unknown)
    )


def file_sha256(path: Path | str) -> str:
    """SHA-256 of a file's bytes, 64 hex digits. Raises DataError when it cannot be read."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """What happens to a prompt that is too long."""

    tokens: int
    truncation: str
    drops: bool

    def apply(self, ids: list[int]) -> list[int] | None:
        """The ids within the limit; None: dropped."""
        if not ids:
            raise Complaint("renders to no token at all", "use a chat template that writes its messages")
        if len(ids) <= self.tokens:
            return ids
        if self.drops:
            return None
        if self.truncation == "error":
            raise Complaint(
                f"has {len(ids)} tokens after the chat template, {self.tokens} are allowed",
                "raise data.max_prompt_length, set data.truncation to left or right, "
                "or drop such rows by data.filter_overlong_prompts: true",
            )
        return ids[-self.tokens :] if self.truncation == "left" else ids[: self.tokens]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """The cells in use. One that could not be read is its Complaint, and raised where it is asked for."""

    prompt: Any
    data_source: Any
    answers: tuple[Any, ...]
    """By ANSWERS."""

    def messages(self) -> Any:
        return _read(self.prompt)

    def source(self) -> str:
        found = _read(self.data_source)
        return "" if found is None else str(found)

    def truth(self) -> str | None:
        """reward_model.ground_truth, else extra_info.answer, as text; a list or a struct as its JSON."""
        found = next((answer for cell in self.answers if (answer := _read(cell)) is not None), None)
        if isinstance(found, bytes | list | dict):
            return _json_text(found)
        return None if found is None else str(found)


def _read(cell: Any) -> Any:
    if isinstance(cell, Complaint):
        raise cell
    return cell


def _json_text(found: bytes | list[Any] | dict[str, Any]) -> str:
    try:
        return canonical_json(found).decode()
    except (TypeError, ValueError) as error:
        raise Complaint(
            f"has a ground truth that cannot be written as JSON ({error})", "write the answer as text, say its JSON"
        ) from None


def _rows(files: Sequence[Path | str], prompt_key: str) -> Iterator[tuple[str, _Row]]:
    """(where it stands, its cells) of every row, file after file."""
    number = 0
    for path in files:
        for index, row in enumerate(_table_rows(Path(path), prompt_key)):
            yield f"row {number}" if len(files) == 1 else f"row {number} ({Path(path).name}, row {index})", row
            number += 1


def _table_rows(path: Path, prompt_key: str) -> list[_Row]:
    table = _table(path, prompt_key)
    try:
        columns = {name: table.column(name) for name in {prompt_key, *READ_COLUMNS} & set(table.column_names)}
    except KeyError as error:  # two columns of one name
        raise _unreadable(path, error) from error
    empty = [None] * table.num_rows
    prompts = _cells(prompt_key, columns[prompt_key])
    sources = _cells("data_source", columns["data_source"]) if "data_source" in columns else empty
    answers = [_answers(name, columns[name]) if name in columns else empty for name in ANSWERS]
    return [
        _Row(prompt=prompt, data_source=source, answers=tuple(found))
        for prompt, source, *found in zip(prompts, sources, *answers, strict=True)
    ]


def _answers(name: str, column: pa.ChunkedArray) -> list[Any]:
    """The one field in use: what else lies beside it need not be readable here."""
    field = ANSWERS[name]
    if not pa.types.is_struct(column.type) or column.type.get_field_index(field) < 0:
        return [None] * len(column)
    return _cells(f"{name}.{field}", pc.struct_field(column, field))


def _cells(name: str, column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, a Complaint in place of one that cannot be read."""
    try:
        return column.to_pylist()
    except UNREADABLE:
        return [_cell(name, scalar) for scalar in column]


def _cell(name: str, scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except UNREADABLE as error:
        return Complaint(
            f"{name} cannot be read ({error})", "write text as UTF-8, and times in microseconds or as text"
        )


def _table(path: Path, prompt_key: str) -> pa.Table:
    """The columns in use of one file."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if prompt_key in names:
                return file.read(columns=[name for name in (prompt_key, *READ_COLUMNS) if name in names])
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    near = get_close_matches(prompt_key, names, n=1, cutoff=0.5)
    raise DataError(
        "data.prompt_key",
        value=prompt_key,
        problem=f"is no column of {path}, which has {', '.join(names) or 'none'}",
        fix=f"did you mean {near[0]}?" if near else "name the column that holds the prompts",
    )


def _unreadable(path: Path | str, error: Exception) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(
            f"data file {path}",
            problem="is missing",
            fix="correct data.train_files or data.val_files, or fetch the file",
        )
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return DataError(
        f"data file {path}",
        problem=f"cannot be read ({reason})",
        fix="name an undamaged Parquet file that you may read",
    )


def _named(files: Sequence[Path | str]) -> str:
    return ", ".join(str(path) for path in files)


def _refusal(files: Sequence[Path | str], rows: int, complaints: list[tuple[str, Complaint]]) -> DataError:
    lines = [f"\n  {where}: {complaint.problem}" for where, complaint in complaints[:SHOWN]]
    if len(complaints) > SHOWN:
        lines.append(f"\n  and {len(complaints) - SHOWN} more")
    fixes = dict.fromkeys(complaint.fix for _, complaint in complaints)
    return DataError(
        f"prompts of {_named(files)}",
        problem=f"{len(complaints)} of {rows} rows cannot be used (counted from 0){''.join(lines)}",
        fix=" / ".join(fixes),
    )


def _empty(files: Sequence[Path | str], rows: int, dropped: int, limit: int) -> DataError:
    problem = f"all {rows} rows are over {limit} tokens and were dropped" if dropped else "hold no row"
    fix = "raise data.max_prompt_length" if dropped else "name files with at least one prompt"
    return DataError(f"prompts of {_named(files)}", problem=problem, fix=fix)


def _notes(
    files: Sequence[Path | str], rows: int, limit: _Limit, *, dropped: int, cut: int, unknown: int
) -> tuple[str, ...]:
    over = f"of {rows} prompts of {_named(files)} are over {limit.tokens} tokens:"
    notes = []
    if dropped:
        notes.append(f"{dropped} {over} dropped (data.filter_overlong_prompts)")
    if cut:
        notes.append(f"{cut} {over} cut on the {limit.truncation} (data.truncation)")
    if unknown:
        notes.append(
            f"{unknown} of {rows} prompts of {_named(files)} are mostly the unknown token: "
            "this tokenizer has no tokens for their text"
        )
    return tuple(notes)
