"""This file holds what a run looks like while it works, on a terminal and in a log."""

import io

import pytest
from rich.console import Console

from miniverl.cli.progress import Pace, figures, progress
from miniverl.contract.event import EVALUATION, NOTE, STEP, Event


def step(number: int, **values: float) -> Event:
    return Event(kind=STEP, text=f"step {number}", step=number, total=4, values=values)


def shown(*events: Event, terminal: bool, steps: bool = True) -> str:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, no_color=not terminal, width=120, _environ={})
    with progress(console, steps=steps) as say:
        for event in events:
            say(event)
    return file.getvalue()


def test_a_log_gets_one_plain_line_for_each_event():
    lines = shown(
        Event(kind=NOTE, text="Ray [started] for this run"), step(1, **{"actor/distillation/loss": 0.5}), terminal=False
    ).splitlines()
    assert lines == ["Ray [started] for this run", "step 1/4  loss 0.5"]


def test_a_terminal_gets_a_bar_with_the_newest_figures():
    accuracy = Event(kind=EVALUATION, text="student: 50%", step=1, values={"accuracy": 0.5, "n": 8.0})
    text = shown(accuracy, step(2, **{"actor/distillation/loss": 0.25}), terminal=True)
    assert "student: 50%" in text and "loss 0.25" in text and "accuracy 50.0%" in text and "2/4" in text


def test_only_figures_a_step_has_are_named():
    assert figures(step(1, **{"actor/pg_loss": -1.0})) == "pg loss -1"
    assert figures(step(1)) == ""


@pytest.mark.parametrize(("steps", "left"), [((1,), None), ((1, 2), 20.0), ((3, 4), 0.0)])
def test_the_time_left_follows_from_the_steps_seen(steps, left):
    clock = iter(range(0, 100, 10))
    pace = Pace(clock=lambda: next(clock))
    assert [pace.left(step(number)) for number in steps][-1] == left


@pytest.mark.parametrize("terminal", [False, True])
def test_without_the_console_among_the_sinks_only_the_steps_are_silent(terminal):
    accuracy = Event(kind=EVALUATION, text="student: 50%", step=1, values={"accuracy": 0.5, "n": 8.0})
    assert shown(accuracy, step(2), terminal=terminal, steps=False) == "student: 50%\n"
