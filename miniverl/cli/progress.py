"""This file holds the progress of a run as a reader sees it: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from miniverl.contract.event import EVALUATION, STEP, Event
from miniverl.metrics import declared

FIGURES = (
    (declared.DISTILLATION_LOSS.name, "loss"),
    (declared.PG_LOSS.name, "pg loss"),
    (declared.GRAD_NORM.name, "grad norm"),
    (declared.RESPONSE_LENGTH_MEAN.name, "tokens per response"),
    (declared.TIME_STEP.name, "seconds"),
)
"""Metrics worth a place on the line of a step, with their short names; those a step has are shown."""

Say = Callable[[Event], None]


@contextmanager
def progress(console: Console, *, steps: bool = True) -> Iterator[Say]:
    """What to call with each event. A terminal that allows colour gets a bar, everything else one line per event.

    Without ``steps`` neither says anything of a step; the other events are lines.
    """
    if not steps:
        lines = _Lines(console)
        yield lambda event: None if event.kind == STEP else lines(event)
    elif console.is_terminal and not console.no_color:
        with Bar(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), console=console,
        ) as bar:  # fmt: skip
            yield _Bar(bar)
    else:
        yield _Lines(console)


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console, self._pace = console, Pace()

    def __call__(self, event: Event) -> None:
        text = event.text
        if event.kind == STEP:
            left = self._pace.left(event)
            text = f"step {event.step}/{event.total}  {figures(event)}" + (f"  {_clock(left)} left" if left else "")
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Bar:
    def __init__(self, bar: Bar) -> None:
        self._bar, self._accuracy = bar, ""
        self._task: TaskID | None = None

    def __call__(self, event: Event) -> None:
        if event.kind == EVALUATION and "accuracy" in event.values:
            self._accuracy = f"  accuracy {event.values['accuracy']:.1%}"
        if event.kind != STEP:
            self._bar.console.print(event.text, markup=False, highlight=False, soft_wrap=True)
            return
        if self._task is None:
            self._task = self._bar.add_task("", total=event.total, completed=event.step - 1)
        self._bar.update(self._task, completed=event.step, description=f"{figures(event)}{self._accuracy}")


class Pace:
    """Seconds that are left, from the steps seen so far; a run that continues does not count what it did before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[int, float] | None = None

    def left(self, event: Event) -> float | None:
        """None until two steps are done."""
        now = self._clock()
        if self._first is None:
            self._first = (event.step, now)
        done, since = event.step - self._first[0], now - self._first[1]
        return since / done * (event.total - event.step) if done > 0 else None


def figures(event: Event) -> str:
    """The step's few figures on one line."""
    return "  ".join(f"{short} {event.values[name]:.4g}" for name, short in FIGURES if name in event.values)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
