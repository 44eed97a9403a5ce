"""This file holds the command ``miniverl demo``: the quickstart, in friendly words."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from miniverl.cli.run import perform, planned, say_line

RECIPE = "quickstart"


def demo(
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes to the quickstart recipe.")
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option("--output-dir", "-o", help="Run directory; runs/quickstart when not given.")
    ] = None,
) -> None:
    """Watch a small student learn addition from a teacher. Any machine, no download, a few minutes.

    The same as 'miniverl run quickstart'. Done once, it shows its figures again; a new one: miniverl demo -o DIR
    """
    console = Console()
    say_line(console, "miniverl demo: a small student that mostly gets sums wrong learns them from its teacher.")
    say_line(console, "Five Ray actors do the work; Ctrl-C stops, and the same command continues.")
    perform(planned(RECIPE, overrides or (), output_dir), console)
