"""This file holds the writing of sample data: Parquet in verl's schema, one file for each split of the sums."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from miniverl.data import sums
from miniverl.errors import DataError

SCHEMA = pa.schema(
    {
        "data_source": pa.string(),
        "prompt": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
        "ability": pa.string(),
        "reward_model": pa.struct({"style": pa.string(), "ground_truth": pa.string()}),
        "extra_info": pa.struct({"index": pa.int64(), "split": pa.string()}),
    }
)
"""verl's columns."""


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """One Parquet file of rows in ``SCHEMA``; an existing file is replaced."""
    pq.write_table(pa.Table.from_pylist(list(rows), schema=SCHEMA), path, compression="zstd")


def counts(train_rows: int) -> dict[str, int]:
    """Rows of each split: validation and held-out get an eighth of the training rows, and one at least."""
    return {split: train_rows if split == sums.TRAIN else max(1, train_rows // 8) for split in sums.SPLITS}


def write_sample(folder: Path, *, rows: int, seed: int) -> dict[Path, int]:
    """Writes train, validation and held-out sums into a folder; returns the files with their row counts.

    Raises DataError when a file is already there, when the folder cannot be written, or for a count of rows that
    cannot be drawn; no file is there then that was not before.
    """
    folder = _expanded(folder)
    files = {split: folder / f"{split}.parquet" for split in sums.SPLITS}
    with _named(folder):
        taken = [path.name for path in files.values() if path.exists()]
    if taken:
        raise DataError(
            str(folder), value=taken, problem="is there already", fix="name another folder, or remove the files first"
        )
    drawn = {split: sums.rows(split, count=count, seed=seed) for split, count in counts(rows).items()}
    drafts = {split: path.with_name(f".{path.name}.tmp-{os.getpid()}") for split, path in files.items()}
    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            for split, draft in drafts.items():
                write_rows(draft, drawn[split])
            for split, draft in drafts.items():  # nothing is in the way of these, and they need no space
                draft.rename(files[split])
        finally:
            for draft in drafts.values():
                draft.unlink(missing_ok=True)
    return {path: len(drawn[split]) for split, path in files.items()}


def _expanded(folder: Path) -> Path:
    try:
        return folder.expanduser()
    except RuntimeError as error:
        raise DataError(str(folder), problem=f"is not a folder ({error})", fix="name another folder") from error


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = os.strerror(error.errno) if error.errno else str(error)
        fix = "free some space and start the same command again" if full else "name a folder you may write to"
        raise DataError(str(folder), problem=f"cannot be written ({reason})", fix=fix) from error
