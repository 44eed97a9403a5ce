"""This file holds the Python interface: plan, run and inspect, for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def inspect(run_dir: str | Path) -> dict[str, Any]:
    """What a run directory says about its run, while it goes on or after: what ``miniverl inspect --json`` prints.

    Raises RecordError when there is no run.
    """
    from miniverl.report.inspect import inspect_run

    return inspect_run(run_dir)
