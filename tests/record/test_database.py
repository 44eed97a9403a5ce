"""This file holds the behaviour of commits: whatever byte or instruction a writer dies at, each is whole or absent."""

import itertools
import os
import random
import shutil
import signal
import sqlite3
import threading
from contextlib import suppress

import pytest

from miniverl.errors import RecordError
from miniverl.record.database import Database, choose_mode, named_errors
from miniverl.record.journal import Journal
from miniverl.record.reader import JournalReader
from tests.record.drawn import IDENTITY, again, die, fresh, in_a_child, on_a_small_disk, parcel, tensors

PAGE, FRAME = 512, 512 + 24
"""Bytes of a page, and of a page in the log with its header."""


def whole_parcels(run_dir, *, size: int) -> int:
    """Groups recorded, after checking that they are complete parcels, readable, and of an unbroken chain."""
    with again(run_dir) as journal:  # opening verifies the chain
        found = journal.find(1, tensors(0))
        assert len(found) == journal.facts().rows and len(found) % size == 0
        assert [one.cursor for one in found] == list(range(len(found)))
        return len(found)


def test_a_writer_killed_at_any_instruction_of_its_transaction_leaves_the_parcel_whole_or_absent(tmp_path):
    fresh(tmp_path).release()

    def append_and_die_at(instruction: int) -> None:
        journal = again(tmp_path)
        done = journal.facts().rows
        left = iter(range(instruction))
        journal.database.connection.set_progress_handler(lambda: next(left, None) is None and die(), 1)
        journal.append(parcel([done, done + 1]))

    seen, instruction, ended = set(), 0, -signal.SIGKILL
    while ended:
        before = whole_parcels(tmp_path, size=2)
        ended = in_a_child(lambda at=instruction: append_and_die_at(at))
        assert ended in (0, -signal.SIGKILL)
        seen.add(whole_parcels(tmp_path, size=2) - before)
        instruction += 23
    assert instruction > 200 and seen == {0, 2}


def test_a_writer_killed_at_any_moment_leaves_whole_parcels(tmp_path):
    fresh(tmp_path).release()
    moments = random.Random(3)

    def append_until_killed() -> None:
        with again(tmp_path) as journal:
            for turn in itertools.count():
                done = journal.facts().rows
                journal.append(parcel(range(done, done + 3), samples=4, width=200))
                if turn == 0:
                    threading.Timer(moments.random() * 0.05, die).start()

    recorded = 0
    for _ in range(8):
        assert in_a_child(append_until_killed) == -signal.SIGKILL
        moments.random()
        now = whole_parcels(tmp_path, size=3)
        assert now > recorded
        recorded = now


def small_pages(run_dir) -> None:
    """Makes the log's frames as short as SQLite can: fewer bytes to cut at, the same borders between them."""
    connection = sqlite3.connect(run_dir / "journal.sqlite", isolation_level=None)
    for statement in ("journal_mode = DELETE", f"page_size = {PAGE}"):
        connection.execute(f"PRAGMA {statement}")
    connection.execute("VACUUM")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


@pytest.fixture(scope="module")
def two_commits(tmp_path_factory):
    """A journal copied while open: (folder, length of its log after the first commit and after the second)."""
    live, copy = tmp_path_factory.mktemp("live"), tmp_path_factory.mktemp("copy")
    fresh(live).release()
    small_pages(live)
    with again(live) as journal:
        journal.append(parcel([0], samples=1))
        first = (live / "journal.sqlite-wal").stat().st_size
        journal.append(parcel([1, 2], samples=1))
        second = (live / "journal.sqlite-wal").stat().st_size
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            shutil.copy(live / name, copy / name)
    return copy, first, second


def groups_after_a_cut(folder, run_dir, length: int) -> int:
    """Groups a reader finds once the log is cut to ``length``; cuts only ever shorten."""
    os.truncate(folder / "journal.sqlite-wal", length)
    for stale in run_dir.glob("*-shm"):
        stale.unlink()
    with JournalReader.read_only(run_dir) as reader:
        assert len(reader.find(1, tensors(0))) == reader.facts().rows
        return reader.facts().rows


def cut_everywhere(two_commits, run_dir, lengths) -> None:
    folder, _, second = two_commits
    for name in ("journal.sqlite", "journal.sqlite-wal"):
        shutil.copy(folder / name, run_dir / name)
    assert groups_after_a_cut(run_dir, run_dir, second) == 3
    for length in sorted(lengths, reverse=True):
        assert groups_after_a_cut(run_dir, run_dir, length) == 1
    assert whole_parcels(run_dir, size=1) == 1


def test_a_log_cut_inside_its_last_commit_gives_the_commit_before(two_commits, tmp_path):
    _, first, second = two_commits
    frames = {first + n * FRAME + near for n in range((second - first) // FRAME + 1) for near in (-1, 0, 1, 24)}
    cut_everywhere(two_commits, tmp_path, {n for n in (*frames, *range(first, second, 97)) if first <= n < second})


@pytest.mark.slow
def test_a_log_cut_at_every_byte_of_its_last_commit_gives_the_commit_before(two_commits, tmp_path):
    _, first, second = two_commits
    cut_everywhere(two_commits, tmp_path, range(first, second))


def test_an_error_inside_a_transaction_takes_everything_back(tmp_path):
    with fresh(tmp_path) as journal:
        with pytest.raises(KeyboardInterrupt), journal.database.transaction() as connection:
            connection.execute("INSERT INTO notes VALUES (1, 1, '{}')")
            raise KeyboardInterrupt
        assert journal.notes() == ()
        journal.append(parcel([0]))


def test_a_commit_waits_for_the_disk(tmp_path):
    with fresh(tmp_path) as journal:
        assert journal.database.row("PRAGMA journal_mode") == ("wal",)
        assert journal.database.row("PRAGMA synchronous") == (2,)  # FULL


def test_without_shared_memory_a_rollback_file_does_the_same(tmp_path):
    connection = sqlite3.connect(f"file:{tmp_path / 'a'}?vfs=unix-dotfile", uri=True)
    assert choose_mode(connection) == "delete"
    assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    connection.close()

    fresh(tmp_path).release()
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    with again(tmp_path) as journal:
        journal.append(parcel([0]))
        assert journal.database.row("PRAGMA synchronous") == (3,)
    assert whole_parcels(tmp_path, size=1) == 1


def test_another_connection_that_keeps_the_file_is_waited_for_and_then_named(tmp_path):
    with fresh(tmp_path) as journal:
        other = sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        journal.database.connection.execute("PRAGMA busy_timeout = 20")
        with pytest.raises(RecordError, match="held by another process"):
            journal.append(parcel([0]))
        other.execute("COMMIT")
        other.close()
        journal.append(parcel([0]))


def test_a_failed_creation_leaves_no_journal(tmp_path):
    with pytest.raises(sqlite3.ProgrammingError):
        Database.create(tmp_path / "journal.sqlite", {"run_id": object()})  # type: ignore[dict-item]
    assert [path.name for path in tmp_path.iterdir()] == []
    assert isinstance(fresh(tmp_path), Journal)


@pytest.mark.parametrize("size", range(4096, 100_000, 8192))
def test_a_disk_full_at_the_start_leaves_no_journal_or_a_whole_one_and_says_so(tmp_path, size):
    def begin(make_room) -> None:
        with suppress(RecordError):
            fresh(tmp_path / "run").release()
        assert not list((tmp_path / "run").glob(".journal.sqlite*"))
        make_room()
        with Journal.open_or_create(tmp_path / "run", **IDENTITY) as journal:
            journal.append(parcel([0]))

    assert on_a_small_disk(tmp_path / "run", size, begin) == 0


def test_a_disk_without_room_for_shared_memory_is_called_full(tmp_path, monkeypatch):
    full = shutil.disk_usage(tmp_path)._replace(free=4096)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    with pytest.raises(RecordError, match="check the disk"), named_errors(tmp_path / "journal.sqlite"):
        raise error
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    told = r"journal.sqlite: no space left \(4,096 bytes are free\)"
    with pytest.raises(RecordError, match=told), named_errors(tmp_path / "journal.sqlite"):
        raise error
