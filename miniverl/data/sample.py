"""This file holds the writing of sample data: Parquet in verl's schema, one file for each split of the sums."""

from __future__ import annotations

from collections.abc import Sequence
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
    cannot be drawn; nothing is written then.
    """
    files = {split: folder / f"{split}.parquet" for split in sums.SPLITS}
    taken = [path.name for path in files.values() if path.exists()]
    if taken:
        raise DataError(
            str(folder), value=taken, problem="is there already", fix="name another folder, or remove the files first"
        )
    drawn = {split: sums.rows(split, count=count, seed=seed) for split, count in counts(rows).items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for split, path in files.items():
            write_rows(path, drawn[split])
    except OSError as error:
        raise DataError(
            str(folder), problem=f"cannot be written ({error.strerror or error})", fix="name a folder you may write to"
        ) from error
    return {path: len(drawn[split]) for split, path in files.items()}
