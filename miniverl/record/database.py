"""This file holds Database: one connection to a journal's SQLite file, whose failures name the file."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from miniverl.errors import RecordError
from miniverl.record import schema
from miniverl.record.files import named_errors as os_errors
from miniverl.record.files import no_space, rename_durably

_PATIENCE = 30.0
"""Seconds to wait for another connection's transaction."""

_FULL = 256 * 1024
"""Bytes: SQLite calls a disk with less than this left an input/output error, or a file it cannot open, too."""

_REASONS = {
    sqlite3.SQLITE_CORRUPT: ("is damaged", "put a copy of the journal back, with its -wal file"),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite file", "put the run's own journal back"),
    sqlite3.SQLITE_READONLY: ("cannot be written", "give this user write permission on it and on its folder"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "give this user permission on it and on its folder"),
    sqlite3.SQLITE_PERM: ("cannot be opened", "give this user permission on it and on its folder"),
    sqlite3.SQLITE_BUSY: ("is held by another process", "end that process"),
}


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Whatever SQLite refuses inside leaves as a RecordError that names the file."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of ours: another thread, a closed connection
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN) and _is_full(path)):
            raise no_space(path) from error
        problem, fix = _REASONS.get(code, ("failed", "check the disk"))
        raise RecordError(str(path), problem=f"{problem} ({error})", fix=fix) from error


class Database:
    """A journal's file, open. Used by the thread that opened it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path, self.connection = path, connection

    @classmethod
    def create(cls, path: Path, meta: dict[str, str]) -> None:
        """Makes a journal's file with its tables and facts. It appears under its name complete, or not at all."""
        draft = path.with_name(f".{path.name}.tmp")
        _remove(draft)
        try:
            with named_errors(path):
                _fill(draft, meta)
            if draft.with_name(draft.name + "-wal").exists():
                raise RecordError(str(path), problem="its write-ahead log could not be folded", fix="check the disk")
            schema.refuse_foreign(draft)
            rename_durably(draft, path)
        finally:
            _remove(draft)

    @classmethod
    def open(cls, path: Path) -> Database:
        """Opens a file of ours for writing; the caller holds the lock."""
        schema.refuse_foreign(path)
        with named_errors(path):
            connection = _connect(path, "mode=rw")
            mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
            connection.execute(f"PRAGMA synchronous = {'FULL' if mode == 'wal' else 'EXTRA'}")
            _refuse_damaged(path, connection)
        return cls(path, connection)

    @classmethod
    def open_to_read(cls, path: Path) -> Database:
        """Opens a file of ours beside its writer; writes nothing and waits for nobody."""
        schema.refuse_foreign(path)
        with named_errors(path):
            connection = _connect(path, "mode=ro")
            try:
                connection.execute("SELECT 1 FROM meta").fetchone()
            except sqlite3.OperationalError:
                log = path.with_name(path.name + "-wal")
                if os.access(path.parent, os.W_OK) or (log.exists() and log.stat().st_size):
                    raise
                connection.close()  # a folder we may not write into holds no room for SQLite's shared memory
                connection = _connect(path, "mode=ro&immutable=1")
            _refuse_damaged(path, connection)
        return cls(path, connection)

    def rows(self, statement: str, values: Iterable[Any] = ()) -> list[tuple]:
        with named_errors(self.path):
            return self.connection.execute(statement, tuple(values)).fetchall()

    def row(self, statement: str, values: Iterable[Any] = ()) -> tuple | None:
        with named_errors(self.path):
            return self.connection.execute(statement, tuple(values)).fetchone()

    @contextmanager
    def transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """All that happens inside is one commit, or nothing. ``DEFERRED`` gives a reader one view of the file."""
        with named_errors(self.path):
            self.connection.execute(f"BEGIN {kind}")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    def close(self) -> None:
        self.connection.close()


def choose_mode(connection: sqlite3.Connection) -> str:
    """Sets the journal mode for good: a write-ahead log, or where its shared memory does not work, a rollback file."""
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    connection.execute(f"PRAGMA synchronous = {'FULL' if mode == 'wal' else 'EXTRA'}")
    return mode


def _fill(draft: Path, meta: dict[str, str]) -> None:
    """Content first, in the file itself: closing a write-ahead log says nothing when a full disk keeps it unfolded."""
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("BEGIN IMMEDIATE")
        for statement in schema.STATEMENTS:
            connection.execute(statement)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
        connection.execute("COMMIT")
        choose_mode(connection)
    finally:
        connection.close()


def _remove(draft: Path) -> None:
    """Takes a draft away, with the files SQLite keeps beside it."""
    with os_errors(draft):
        for path in (draft, *(draft.with_name(draft.name + end) for end in ("-journal", "-wal", "-shm"))):
            path.unlink(missing_ok=True)


def _is_full(path: Path) -> bool:
    try:
        return shutil.disk_usage(path.parent).free < _FULL
    except OSError:
        return False


def _refuse_damaged(path: Path, connection: sqlite3.Connection) -> None:
    """Sees torn pages and missing values: reading then meets no wrong types. Digests judge the payloads."""
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        connection.close()
        raise RecordError(
            str(path), problem=f"is damaged ({found})", fix="put a copy of the journal back, with its -wal file"
        )


def _connect(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True, isolation_level=None, timeout=_PATIENCE)
