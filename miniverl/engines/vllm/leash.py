"""This file holds the leash: a small process between us and a server, that ends the server when either end lets go.

Run as a program: ``python leash.py RECORD -- COMMAND...``. Its standard input is the leash: when it closes, because
we closed it or died, the server's whole process group is ended. It writes the ids of all processes of the server into
RECORD, so that what outlives even the leash can be found and ended at the next start. Standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

GRACE = 10.0
"""Seconds between asking and killing."""
LOOK = 1.0
"""Seconds between two looks at which processes the server has."""
DEAF_TO = (signal.SIGINT, signal.SIGTERM)
"""A Ctrl-C reaches the whole terminal, and the leash is let go by us alone."""
PR_SET_PDEATHSIG = 1


def started(pid: int) -> str | None:
    """When the process was started, in ticks since boot; None: there is none, or a dead one nobody has collected.

    With the number it names a process for good: numbers come back, start times do not.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] == "Z" else fields[19]


def descendants(pid: int) -> list[int]:
    """``pid`` and all processes below it."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                waiting += map(int, task.read_text().split())
    return found


def record(path: Path, pids: list[int]) -> None:
    """Writes pids with their start times, whole or not at all."""
    named = {str(pid): began for pid in pids if (began := started(pid)) is not None}
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(named))
    draft.replace(path)


def living(path: Path) -> list[int]:
    """Processes of a record that are still the ones it names."""
    try:
        named = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return [int(pid) for pid, began in named.items() if started(int(pid)) == began]


def sweep(path: Path) -> list[int]:
    """Ends the living processes of a record; returns their ids. The record is removed."""
    found = living(path)
    end(lambda: living(path), lambda number: _signal(os.kill, living(path), number))
    path.unlink(missing_ok=True)
    return found


def end(alive: Callable[[], object], send: Callable[[int], object]) -> None:
    """Asks, waits, kills, and waits until nothing is alive."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        send(number)
        if any(not alive() for _ in _until(GRACE)):
            return


def _until(seconds: float) -> Iterator[None]:
    last = time.monotonic() + seconds
    while time.monotonic() < last:
        yield
        time.sleep(0.05)


def _signal(send: Callable[[int, int], None], targets: Iterable[int], number: int) -> None:
    for target in targets:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            send(target, number)


def _before_it_runs() -> None:
    """In the server's process: a leash that is killed takes it along, and it does not inherit our deafness."""
    for number in DEAF_TO:
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def hold(path: Path, command: list[str]) -> int:
    """Runs the command until the leash is let go or the command ends; its exit code."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_before_it_runs)
    family: set[int] = {server.pid}
    while server.poll() is None:
        family.update(descendants(server.pid))
        record(path, sorted(family))
        if select.select([sys.stdin], [], [], LOOK)[0]:  # nobody writes: readable means closed
            break

    def send(number: int) -> None:
        _signal(os.killpg, [server.pid], number)
        _signal(os.kill, living(path), number)

    end(lambda: server.poll() is None or living(path), send)
    path.unlink(missing_ok=True)
    return server.wait()


if __name__ == "__main__":
    for ignored in DEAF_TO:
        signal.signal(ignored, signal.SIG_IGN)
    sys.exit(hold(Path(sys.argv[1]), sys.argv[3:]))
