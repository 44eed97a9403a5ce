"""This file holds the behaviour of the lease: every life has its own number, and only the newest one counts."""

import sqlite3

import pytest

from miniverl.errors import RecordError
from miniverl.record import lease
from tests.record.drawn import again, fresh


def test_every_life_raises_the_number_by_one(tmp_path):
    with fresh(tmp_path) as journal:
        first = journal.facts().lease
    for life in (1, 2):
        with again(tmp_path) as journal:
            assert journal.facts().lease == first + life


def test_an_old_number_is_refused_with_who_holds_the_new_one(tmp_path):
    fresh(tmp_path).release()
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    mine = lease.take(connection)
    lease.check(connection, mine, "the journal")
    lease.take(connection)
    with pytest.raises(RecordError, match=f"holds lease {mine + 1}"):
        lease.check(connection, mine, "the journal")
    connection.close()
