"""This file holds the lease: the number that tells a journal's present writer from one that stopped and woke later."""

from __future__ import annotations

import json
import sqlite3

from miniverl.errors import RecordError
from miniverl.record.lock import myself


def take(connection: sqlite3.Connection) -> int:
    """Raises the number by one, inside the caller's transaction, and returns it: this life's lease."""
    connection.execute("UPDATE lease SET number = number + 1, owner = ?", (json.dumps(myself()),))
    return connection.execute("SELECT number FROM lease").fetchone()[0]


def check(connection: sqlite3.Connection, mine: int, path: object) -> None:
    """Raises RecordError when a later life took over. Belongs inside each writing transaction, before it writes."""
    number, owner = connection.execute("SELECT number, owner FROM lease").fetchone()
    if number != mine:
        facts = json.loads(owner)
        raise RecordError(
            str(path),
            value=mine,
            problem=f"this lease ended: process {facts.get('pid')} on {facts.get('host')} holds lease {number}",
            fix="end this process; the other one continues the run",
        )
