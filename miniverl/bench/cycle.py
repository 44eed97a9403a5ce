"""This file holds the cycle: what the phases of whole training steps cost, on the page itself, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from inspect import isgenerator
from typing import Any

from miniverl.plan.plan import Plan
from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles
from miniverl.training.loop import train
from miniverl.training.roles import Roles


class Timed:
    """A role whose calls are timed. What a call hands over piece by piece is timed piece by piece."""

    def __init__(self, role: Any, name: str, spent: dict[str, float]) -> None:
        self._role, self._name, self._spent = role, name, spent

    def __getattr__(self, call: str) -> Callable[..., Any]:
        method, label = getattr(self._role, call), f"{self._name}.{call}"

        def timed(*arguments: Any, **named: Any) -> Any:
            result = self._clock(label, lambda: method(*arguments, **named))
            return self._pieces(label, result) if isgenerator(result) else result

        return timed

    def _clock(self, label: str, call: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        try:
            return call()
        finally:
            self._spent[label] = self._spent.get(label, 0.0) + time.perf_counter() - began

    def _pieces(self, label: str, source: Iterator[Any]) -> Iterator[Any]:
        nothing = object()
        while (piece := self._clock(label, lambda: next(source, nothing))) is not nothing:
            yield piece


def cycle(plan: Plan) -> dict[str, float]:
    """Seconds per step of every call of the page, by role and call, and of the whole step. The run is a real one."""
    spent: dict[str, float] = {}
    roles = local_roles(plan)
    timed = Roles(**{field.name: Timed(getattr(roles, field.name), field.name, spent) for field in fields(Roles)})
    run = assemble(plan, timed, stop=lambda: False, say=lambda event: None)
    spent.clear()  # taking up the run is not part of a step
    began = time.perf_counter()
    train(run)
    steps = plan.schedule.total_training_steps
    whole = (time.perf_counter() - began) / steps
    return {**{label: seconds / steps for label, seconds in sorted(spent.items())}, "step": whole}
