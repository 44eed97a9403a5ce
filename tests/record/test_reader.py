"""This file holds the behaviour of reading beside the writer: it sees commits, and leaves nothing behind."""

import tempfile
from pathlib import Path

import pytest

from miniverl.errors import RecordError
from miniverl.record.journal import Journal
from miniverl.record.reader import PROBE, JournalReader
from tests.record.drawn import again, as_somebody_else, fresh, in_a_child, parcel, run_steps, tensors

TEMPORARY = Path(tempfile.gettempdir())


def test_a_reader_sees_what_is_committed_while_the_run_writes(tmp_path):
    with fresh(tmp_path) as journal, JournalReader.read_only(tmp_path) as reader:
        assert reader.facts().rows == 0
        journal.append(parcel([0, 1]))
        assert reader.facts() == journal.facts()
        assert [one.digest for one in reader.find(1, tensors(0))] == [one.digest for one in journal.kept(1)]


def test_one_view_does_not_move_while_the_run_writes(tmp_path):
    with fresh(tmp_path) as journal, JournalReader.read_only(tmp_path) as reader:
        journal.append(parcel([0]))
        with reader.one_view():
            assert reader.facts().rows == 1
            journal.append(parcel([1]))
            assert reader.facts().rows == 1
        assert reader.facts().rows == 2


def test_a_reader_takes_neither_lock_nor_lease_and_changes_no_byte(tmp_path):
    with fresh(tmp_path) as journal:
        run_steps(journal, 1)
        lease = journal.facts().lease
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with Journal.read_only(tmp_path) as reader:
        assert reader.facts().lease == lease and reader.last_step() == 1
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {name: after[name] for name in before} == before
    assert all(not after[name] for name in after.keys() - before.keys() if name.endswith("-wal"))


def test_a_reader_cannot_write(tmp_path):
    fresh(tmp_path).release()
    with (
        JournalReader.read_only(tmp_path) as reader,
        pytest.raises(RecordError, match="cannot be written"),
        reader.database.transaction() as connection,
    ):
        connection.execute("DELETE FROM groups")


def test_a_run_directory_one_may_only_read_can_be_read(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readable")
    with fresh(folder) as journal:
        run_steps(journal, 1)
    above = [parent for parent in folder.parents if parent != TEMPORARY and parent.is_relative_to(TEMPORARY)]
    for parent in above:
        parent.chmod(parent.stat().st_mode | 0o055)
    folder.chmod(0o555)

    def look() -> None:
        as_somebody_else()
        with JournalReader.read_only(folder) as reader:
            assert reader.facts().rows == 2

    assert in_a_child(look) == 0
    folder.chmod(0o755)


def test_the_facts_of_a_step_hold_the_first_two_probes_as_first_noted(tmp_path):
    with fresh(tmp_path) as journal:
        journal.note(0, {PROBE: {"max": 1.0}, "seconds": 2.0})
        run_steps(journal, 3)
        journal.note(1, {PROBE: {"max": 2.0}})
    with again(tmp_path) as journal:
        for version in range(4):
            journal.note(version, {PROBE: {"max": 9.0}})
        assert [journal.facts_at(step).probes for step in range(4)] == [
            (), ({"max": 1.0},), ({"max": 1.0}, {"max": 2.0}), ({"max": 1.0}, {"max": 2.0}),
        ]  # fmt: skip
