"""This file holds the command ``miniverl inspect``: what a run directory tells."""

from __future__ import annotations

from typing import Annotated

import typer


def inspect(
    run: Annotated[str, typer.Argument(help="A run directory, such as runs/quickstart.")],
    as_json: Annotated[bool, typer.Option("--json", help="Everything as JSON.")] = False,
) -> None:
    """Show how far a run is, what it has reached and what it cost. Reads only, also while the run works.

    Example: miniverl inspect runs/quickstart --json
    """
    from miniverl.report import inspect as report

    facts = report.inspect_run(run)
    typer.echo(report.as_json(facts) if as_json else "\n".join(report.render(facts)))
