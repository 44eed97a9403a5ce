"""This file holds the journal's schema: its tables, and the marks by which a file is known as ours."""

from __future__ import annotations

from pathlib import Path

from miniverl.errors import RecordError
from miniverl.record.files import named_errors

APPLICATION_ID = 0x6D56524C
"""SQLite's application_id of a journal: "mVRL"."""

VERSION = 1
"""SQLite's user_version of a journal; another number is another set of tables."""

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE groups (
    position INTEGER PRIMARY KEY,     -- the cursor of its prompt; no gaps
    id TEXT NOT NULL UNIQUE,
    step INTEGER NOT NULL,
    version INTEGER NOT NULL,         -- policy version that sampled it
    tensor_digest TEXT NOT NULL,      -- trainable tensors that sampled it
    snapshot_digest TEXT NOT NULL,
    digest TEXT NOT NULL,             -- of the group's columns
    chain TEXT NOT NULL,              -- of all digests up to here
    fate TEXT NOT NULL,               -- kept, dropped, surplus
    payload BLOB,                     -- Arrow stream; NULL once sealed
    shard TEXT REFERENCES shards (name)
);
CREATE INDEX groups_by_step ON groups (step);
CREATE TABLE steps (
    step INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,         -- after the step
    tensor_digest TEXT NOT NULL,      -- after the step
    cursor INTEGER NOT NULL,          -- prompts taken
    chain_head TEXT NOT NULL,
    rows INTEGER NOT NULL,            -- groups recorded
    report TEXT NOT NULL
);
CREATE TABLE evaluations (
    subject TEXT NOT NULL,
    step INTEGER NOT NULL,            -- 0: before training
    data_digest TEXT NOT NULL,
    tensor_digest TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (subject, step, data_digest)
) WITHOUT ROWID;
CREATE TABLE checkpoints (
    step INTEGER PRIMARY KEY,
    folder TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    scheduled INTEGER NOT NULL,
    pruned INTEGER NOT NULL DEFAULT 0 -- marked for removal: exists no more
);
CREATE TABLE shards (
    name TEXT PRIMARY KEY,
    first INTEGER NOT NULL,           -- positions, both included
    last INTEGER NOT NULL,
    digest TEXT NOT NULL,             -- SHA-256 of the file
    bytes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE lease (one INTEGER PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL, owner TEXT NOT NULL);
CREATE TABLE notes (
    step INTEGER NOT NULL,
    lease INTEGER NOT NULL,           -- which life of the run wrote it
    facts TEXT NOT NULL,
    PRIMARY KEY (step, lease)
) WITHOUT ROWID;
INSERT INTO lease VALUES (1, 0, '{}');
"""

STATEMENTS = (
    *_TABLES.strip().split(";\n"),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
"""What ``create`` runs in one transaction, and nobody else."""


def refuse_foreign(path: Path) -> None:
    """Raises RecordError unless the file's header carries our marks. Looks without opening it as a database.

    An empty file is a valid empty database to SQLite, and a journal with no groups to whoever creates tables on
    opening: it is refused here.
    """
    with named_errors(path), open(path, "rb") as file:
        header = file.read(100)
    number, version = int.from_bytes(header[68:72], "big"), int.from_bytes(header[60:64], "big")
    if not header:
        problem = "is an empty file, not a journal"
    elif not header.startswith(b"SQLite format 3\0") or len(header) < 100:
        problem = "is not a SQLite file"
    elif number != APPLICATION_ID:
        problem = f"is a SQLite file that miniverl did not create (application_id {number})"
    elif version != VERSION:
        problem = f"holds a journal of schema {version}; this miniverl reads schema {VERSION}"
    else:
        return
    raise RecordError(str(path), problem=problem, fix="choose another run.dir, or put the run's own journal back")
