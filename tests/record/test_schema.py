"""This file holds the behaviour of the journal's marks: only a file of ours is opened, and none is made on the way."""

import sqlite3

import pytest

from miniverl.errors import RecordError
from miniverl.record import schema
from miniverl.record.journal import Journal
from miniverl.record.reader import JournalReader
from tests.record.drawn import IDENTITY, fresh, run_steps


def empty_database(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 0")
    connection.execute("VACUUM")
    connection.close()


def foreign_database(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE groups (id)")
    connection.execute("PRAGMA application_id = 77")
    connection.close()


def newer_journal(path):
    fresh(path.parent).release()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


FOREIGN = {
    "an empty file": lambda path: path.write_bytes(b""),
    "is not a SQLite file": lambda path: path.write_bytes(b"groups,steps\n" * 99),
    "is not a SQLite": lambda path: path.write_bytes(b"SQLite format 3\0 and no more"),
    "application_id 0": empty_database,
    "application_id 77": foreign_database,
    f"schema {schema.VERSION + 1}": newer_journal,
}


@pytest.mark.parametrize("problem", FOREIGN)
def test_a_file_that_is_not_ours_is_refused_by_name_and_left_alone(tmp_path, problem):
    path = tmp_path / "journal.sqlite"
    FOREIGN[problem](path)
    before = path.read_bytes()
    for start in (Journal.open, Journal.open_or_create, Journal.create):
        with pytest.raises(RecordError, match=r"journal\.sqlite"):
            start(tmp_path, **IDENTITY)
    with pytest.raises(RecordError, match=problem):
        Journal.open(tmp_path, **IDENTITY)
    with pytest.raises(RecordError, match=problem):
        JournalReader.read_only(tmp_path)
    assert path.read_bytes() == before


def test_a_journal_cut_anywhere_in_its_main_file_is_never_silently_wrong(tmp_path):
    with fresh(tmp_path) as journal:
        run_steps(journal, 2)
    path = tmp_path / "journal.sqlite"
    data = path.read_bytes()
    for length in range(0, len(data), 1499):
        path.write_bytes(data[:length])
        with pytest.raises(RecordError), Journal.open(tmp_path, **IDENTITY) as opened:
            for step in (1, 2):
                opened.find(step, f"{step - 1:064x}")
