"""This file holds lines to small actors, for tests of what carries the calls rather than of what the roles do."""

import os
import signal
import time

from ray.actor import ActorHandle

from actors.shell import Shell, served
from miniverl.errors import TrainingError


class Worker(Shell):
    """A role whose calls succeed, fail, take long or never end, as the test asks."""

    def __init__(self, role: str) -> None:
        super().__init__(role)
        self._seen: list[object] = []

    @served
    def start(self, controller: ActorHandle) -> None:
        self._push_pulses(controller)

    @served
    def echo(self, value: object, other: object = None) -> object:
        self._seen.append(value)
        return value

    @served
    def seen(self) -> list[object]:
        return self._seen

    @served
    def fail(self, value: object = None) -> None:
        raise TrainingError("models.teacher", problem="gives no signal", fix="check it")

    @served
    def break_down(self) -> None:
        raise ZeroDivisionError("a mistake of ours")

    @served
    def count(self, end: int):
        yield from range(end)

    @served
    def sleep(self, seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    @served
    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    @served
    def freeze(self) -> None:
        """The process stands still: alive, and silent."""
        os.kill(os.getpid(), signal.SIGSTOP)


class Listener:
    """Takes pulses as the controller does."""

    def __init__(self) -> None:
        self._pulses: list[object] = []

    def beat(self, pulse: object) -> str:
        self._pulses.append(pulse)
        return "continue"

    def pulses(self) -> list[object]:
        return self._pulses
