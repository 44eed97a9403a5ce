"""This file holds Lock: the operating system's lock that lets one process at a time write into a run directory."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from miniverl.errors import RecordError
from miniverl.record.files import named_errors


class Lock:
    """Held from ``Lock(path)`` until ``release``; a dead process loses it by itself, whatever killed it.

    The file says who holds it, for the one who is refused and for ``inspect``.
    """

    def __init__(self, path: Path) -> None:
        """Raises RecordError naming the holder when another process, or another part of this one, writes here."""
        self.path = path
        with named_errors(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._say(json.dumps(myself()))
            except OSError as error:
                os.close(self._descriptor)
                raise (_held(path) if isinstance(error, BlockingIOError) else error) from None

    def release(self) -> None:
        """Gives the lock back and clears the name; once more does nothing."""
        if self._descriptor >= 0:
            self._say("")
            os.close(self._descriptor)
            self._descriptor = -1

    def _say(self, text: str) -> None:
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)


def myself() -> dict[str, Any]:
    """Process id, host and start of this process, as the lock file and the lease name it."""
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "ticks": _ticks(os.getpid()),
    }


def holder(path: Path) -> Mapping[str, Any] | None:
    """Who wrote its name into the lock file last and did not clear it; None when nobody did. Takes no lock."""
    try:
        facts = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get("pid"), int) else None


def holder_lives(path: Path) -> bool:
    """Whether the holder is a living process, as far as this host can tell. Takes no lock: a reader disturbs nobody."""
    facts = holder(path)
    if facts is None or facts.get("host") != socket.gethostname():
        return False
    ticks = _ticks(facts["pid"])
    return ticks is not None and ticks == facts.get("ticks")


def _held(path: Path) -> RecordError:
    facts = holder(path) or {}
    who = f"process {facts.get('pid', '?')} on {facts.get('host', '?')} since {facts.get('started', '?')}"
    return RecordError(
        str(path),
        problem=f"another run is writing into this directory: {who}",
        fix="wait for it or stop it, or set another run.dir",
    )


def _ticks(pid: int) -> str | None:
    """When a process started, in the kernel's clock ticks; a process id alone may be used again. None: not alive."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            facts = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if facts[0] in "ZX" else facts[19]
