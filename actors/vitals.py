"""This file holds Vitals: what a role actor knows about its own life, and the thread that tells the controller."""

from __future__ import annotations

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from miniverl.contract.pulse import Pulse

INTERVAL = 1.0
"""Seconds between two pulses."""

IDLE = "idle"

CONTINUE, STOP = "continue", "stop"
"""Directives: what the controller answers to a pulse."""


class Vitals:
    """Counts what the role's main thread does; read by the pulse thread."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.stopping = threading.Event()
        self._phase, self._since = IDLE, 0.0
        self._busy, self._calls, self._progress = 0.0, 0, 0

    @contextmanager
    def serving(self, call: str) -> Iterator[None]:
        """Time spent inside counts as busy."""
        self._phase, self._since = call, time.monotonic()
        self._calls += 1
        self.advance()
        try:
            yield
        finally:
            self._busy += time.monotonic() - self._since
            self._phase = IDLE
            self.advance()

    def advance(self) -> None:
        """The call being served got somewhere."""
        self._progress += 1

    def pulse(self) -> Pulse:
        phase = self._phase
        ongoing = 0.0 if phase == IDLE else time.monotonic() - self._since
        return Pulse(
            role=self.role, process=os.getpid(), phase=phase, progress=self._progress,
            busy_seconds=self._busy + ongoing, calls=self._calls, peak_rss=peak_rss(),
        )  # fmt: skip

    def obey(self, directive: str) -> None:
        if directive == STOP:
            self.stopping.set()


def push_pulses(vitals: Vitals, beat: Callable[[Pulse], str | None]) -> None:
    """Starts the daemon thread that pushes a pulse every INTERVAL. It ends when ``beat`` has nobody left to tell."""

    def push() -> None:
        while (directive := beat(vitals.pulse())) is not None:
            vitals.obey(directive)
            time.sleep(INTERVAL)

    threading.Thread(target=push, name=f"{vitals.role}-pulse", daemon=True).start()


def peak_rss() -> int:
    """Peak resident memory of this process in bytes."""
    try:
        with open("/proc/self/status") as status:  # getrusage also remembers the process we were forked from
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
