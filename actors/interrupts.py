"""This file holds Interrupts: what SIGINT and SIGTERM mean while a run works."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)

TERMINATED = 128 + signal.SIGTERM
"""Exit code after SIGTERM."""


class Interrupts:
    """The first SIGINT is a wish, looked up in ``wished``; the second raises KeyboardInterrupt at once, SIGTERM
    raises SystemExit. In force inside the ``with`` block; off the main thread it does nothing, as Python demands."""

    def __init__(self) -> None:
        self.wished = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, action in self._before.items():
            signal.signal(number, action)

    def _take(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            raise SystemExit(TERMINATED)
        if self.wished:
            raise KeyboardInterrupt
        self.wished = True
