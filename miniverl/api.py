"""This file holds the Python interface: plan, run and inspect, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from miniverl.contract.event import Event
    from miniverl.plan.plan import Plan

Overrides = Iterable[str] | Mapping[str, object]
"""Words of a command line (``optim.lr=1e-4``), or a mapping of dotted keys to values."""


def plan(recipe: str | Path, overrides: Overrides = ()) -> Plan:
    """What the recipe would do here, resolved and frozen. Loads no weights and starts nothing.

    ``recipe`` is a YAML file or the name of a packaged recipe. Raises ConfigError, DataError or ModelError.
    """
    from miniverl.plan.compile import compile_plan
    from miniverl.recipe.load import load_recipe

    return compile_plan(load_recipe(str(recipe), overrides))


def run(recipe: str | Path, overrides: Overrides = (), *, say: Callable[[Event], None] | None = None) -> dict[str, Any]:
    """Trains as the recipe says, over Ray actors, and returns what ``inspect`` says in the end.

    The same call again continues the same run. ``say`` receives every event of progress; without it the text of each
    is printed. Raises Stopped after one interrupt, once the last closed step is in a checkpoint.
    """
    from actors.drive import run_over_actors

    resolved = plan(recipe, overrides)
    run_over_actors(resolved, say=say or _print)
    return inspect(resolved.run_dir)


def _print(event: Event) -> None:
    print(event.text, flush=True)


def inspect(run_dir: str | Path) -> dict[str, Any]:
    """What a run directory says about its run, while it goes on or after: what ``miniverl inspect --json`` prints.

    Raises RecordError when there is no run.
    """
    from miniverl.report.inspect import inspect_run

    return inspect_run(run_dir)
