"""Sample files: verl's schema, and nothing overwritten."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from miniverl.data import sums
from miniverl.data.sample import SCHEMA, write_sample
from miniverl.errors import DataError
from tests.record.drawn import as_somebody_else, in_a_child


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


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_disk_that_fills_up_leaves_no_file_and_the_same_command_works_later(tmp_path, monkeypatch, last):
    written, write = [], pq.write_table

    def filling(table, path, **options):
        written.append(path)
        write(table, path, **options)
        if len(written) == last:
            raise OSError(errno.ENOSPC, "Error writing bytes to file")

    with monkeypatch.context() as patch:
        patch.setattr(pq, "write_table", filling)
        with pytest.raises(DataError, match=r"No space left on device.; free some space"):
            write_sample(tmp_path, rows=16, seed=1)
    assert list(tmp_path.iterdir()) == []
    assert len(write_sample(tmp_path, rows=16, seed=1)) == len(list(tmp_path.iterdir())) == 3


def test_a_folder_behind_a_closed_one_is_named():
    def refused() -> None:
        as_somebody_else()
        with pytest.raises(DataError, match=r"cannot be written \(Permission denied\)"):
            write_sample(Path(closed) / "sub", rows=16, seed=1)

    with tempfile.TemporaryDirectory() as closed:
        os.chmod(closed, 0)
        assert in_a_child(refused) == 0
        os.chmod(closed, 0o700)


def test_a_home_folder_is_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert {path.parent for path in write_sample(Path("~/sums"), rows=16, seed=1)} == {tmp_path / "sums"}
    with pytest.raises(DataError, match="is not a folder"):
        write_sample(Path("~nobody-of-that-name/x"), rows=16, seed=1)
