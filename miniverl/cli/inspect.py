"""This file holds the command ``miniverl inspect``: what a run directory tells."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def inspect(
    run: Annotated[str, typer.Argument(help="A run directory, such as runs/quickstart.")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Show how far a run is, what it has reached and what it cost. Reads only, also while the run works.

    Example: miniverl inspect runs/quickstart --json
    """
    from miniverl.report.inspect import inspect_run, render

    facts = inspect_run(run)
    typer.echo(json.dumps(facts, indent=2, sort_keys=True) if as_json else "\n".join(render(facts)))
