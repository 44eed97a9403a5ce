"""Sample files: verl's schema, and nothing overwritten."""

from __future__ import annotations

import os

import pyarrow.parquet as pq
import pytest

from miniverl.data import sums
from miniverl.data.sample import SCHEMA, write_sample
from miniverl.errors import DataError


def test_three_files_in_verls_schema_hold_the_rows_of_their_splits(tmp_path):
    written = write_sample(tmp_path / "new" / "folder", rows=40, seed=5)
    assert {path.name: count for path, count in written.items()} == {
        "train.parquet": 40,
        "validation.parquet": 5,
        "heldout.parquet": 5,
    }
    for path, count in written.items():
        table = pq.read_table(path)
        assert table.schema.equals(SCHEMA)
        assert table.to_pylist() == sums.rows(path.stem, count=count, seed=5)


def test_equal_seeds_write_equal_bytes(tmp_path):
    first, second = (list(write_sample(tmp_path / name, rows=16, seed=1)) for name in "ab")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_file_that_is_there_is_never_overwritten(tmp_path):
    (tmp_path / "heldout.parquet").write_text("mine")
    with pytest.raises(DataError, match=r"\['heldout.parquet'\]: is there already; name another folder"):
        write_sample(tmp_path, rows=16, seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["heldout.parquet"]
    assert (tmp_path / "heldout.parquet").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=f"{tmp_path / 'file'}{os.sep}sub: cannot be written"):
        write_sample(tmp_path / "file" / "sub", rows=16, seed=1)


def test_a_count_that_cannot_be_drawn_writes_nothing(tmp_path):
    with pytest.raises(DataError, match="ask for 1 to"):
        write_sample(tmp_path / "new", rows=0, seed=1)
    assert not (tmp_path / "new").exists()
