"""This file holds Watch: what the controller has heard from each role, and which of them fell silent."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from actors.vitals import CONTINUE, STOP
from miniverl.contract.pulse import Pulse

SILENCE = 15
"""Looks in a row that find no new pulse of a role before it counts as lost. The controller looks once a second, and
looks instead of seconds are counted so that a machine that slept does not wake to five lost roles."""


class Watch:
    """Fed by the control group's threads, read by the training thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulses: dict[str, Pulse] = {}
        self._looks: dict[str, int] = {}
        self._stop = threading.Event()

    def beat(self, pulse: Pulse) -> str:
        """Takes a pulse; returns the directive."""
        with self._lock:
            self._pulses[pulse.role] = pulse
            self._looks[pulse.role] = 0
        return STOP if self._stop.is_set() else CONTINUE

    def stop(self) -> None:
        self._stop.set()

    def stopping(self) -> bool:
        return self._stop.is_set()

    def look(self) -> str | None:
        """The role that has been silent for too long, if any. Called once a second while the controller waits."""
        with self._lock:
            for role in self._looks:
                self._looks[role] += 1
            return next((role for role, looks in self._looks.items() if looks > SILENCE), None)

    def forgive(self) -> None:
        """The controller was busy elsewhere: what it did not look at does not count."""
        with self._lock:
            self._looks = dict.fromkeys(self._looks, 0)

    def pulses(self) -> Mapping[str, Pulse]:
        """The newest pulse of each role."""
        with self._lock:
            return dict(self._pulses)
