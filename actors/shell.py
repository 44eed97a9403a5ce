"""This file holds Shell: what every role actor is around the class that does its work."""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayError

from actors.vitals import Vitals, push_pulses
from miniverl.contract.pulse import Pulse
from miniverl.errors import MiniverlError, RoleError, Stopped

CALL = TypeVar("CALL", bound=Callable[..., Any])

PATIENCE = 30.0
"""Seconds a pulse waits for the controller's reply."""

CONTINUES = "once the cause is mended, the same command continues from the last closed step"
"""What a user does after a role was lost."""


class Shell:
    """A plain sync actor: its methods run on the main thread, where SQLite, grad mode and signals expect to be.

    Constructors take the plan slice and do nothing; ``start`` builds, so that what is bound to a thread is built on it.
    """

    def __init__(self, role: str) -> None:
        self._vitals = Vitals(role)

    def born(self) -> None:
        """Returns once the process exists; what a placement waits for."""

    def _push_pulses(self, controller: ActorHandle) -> None:
        def beat(pulse: Pulse) -> str | None:
            try:
                return ray.get(controller.beat.remote(pulse), timeout=PATIENCE)
            except RayError:  # the controller is gone, and this process will be in a moment
                return None

        push_pulses(self._vitals, beat)


def bound_threads(threads: int) -> None:
    """Torch's threads in this process. Imported here: only a role with a model pays for torch."""
    import torch

    torch.set_num_threads(threads)


def served(method: CALL) -> CALL:
    """The border of an actor: times the call, and names the role when the call fails for a reason nobody foresaw."""

    @functools.wraps(method)
    def call(self: Shell, *args: Any) -> Any:
        with self._vitals.serving(method.__name__), _named(self._vitals.role, method.__name__):
            return method(self, *args)

    @functools.wraps(method)
    def stream(self: Shell, *args: Any) -> Iterator[Any]:
        with self._vitals.serving(method.__name__), _named(self._vitals.role, method.__name__):
            for item in method(self, *args):
                self._vitals.advance()
                yield item

    return stream if inspect.isgeneratorfunction(method) else call  # type: ignore[return-value]


@contextmanager
def _named(role: str, call: str) -> Iterator[None]:
    """Turns an unforeseen error into a RoleError that carries its traceback as a note; ours pass as they are."""
    try:
        yield
    except (MiniverlError, Stopped):
        raise
    except Exception as error:
        named = RoleError(role, problem=f"{call} failed with {type(error).__name__}: {error}", fix=CONTINUES)
        named.add_note("".join(traceback.format_exception(error)))
        raise named from None
