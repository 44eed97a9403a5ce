"""This file holds the miniverl command: one subcommand per file, and errors turned into a few readable lines."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

from miniverl import __version__
from miniverl.cli import bench, data, vllm
from miniverl.cli.demo import demo
from miniverl.cli.inspect import inspect
from miniverl.cli.plan import plan
from miniverl.cli.run import run
from miniverl.cli.submit import submit
from miniverl.errors import ConfigError, DataError, MiniverlError, ModelError, PlacementError, RecordError, Stopped

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo,
    "run": run,
    "plan": plan,
    "inspect": inspect,
    "submit": submit,
}
"""In the order of the help text. Command modules import what is heavy inside their functions: help answers at once."""

USER_MISTAKES = (ConfigError, DataError, ModelError, PlacementError, RecordError)
"""Exit code 2: something to change in the command, the recipe, the data or the run directory. Other errors exit 1."""

INTERRUPTED = 130
"""Exit code of a run that was asked to stop."""

app = typer.Typer(
    name="miniverl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(data.app, name="data")
app.add_typer(vllm.app, name="vllm")
app.add_typer(bench.app, name="bench")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"miniverl {__version__}")
        raise typer.Exit


@app.callback()
def miniverl(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Post-train a language model on one GPU, or on no GPU at all.

    Start with 'miniverl demo': on any machine, in a few minutes, a small
    student learns addition from a teacher.

    Then 'miniverl plan RECIPE' says what a recipe would do and 'miniverl run
    RECIPE' does it; the same command again continues. 'miniverl inspect RUN'
    shows what came out.
    """


def exit_code(error: MiniverlError) -> int:
    """2 for a user's mistake, 1 for a run that failed on its own."""
    return 2 if isinstance(error, USER_MISTAKES) else 1


def describe(error: MiniverlError) -> str:
    """What stands on the terminal: field and value, the problem, the fix.

    >>> print(describe(ConfigError("optim.lr", value=-1, problem="a learning rate is not negative", fix="try 1e-4")))
    error: optim.lr = -1: a learning rate is not negative
      fix: try 1e-4
    """
    found = error.field if error.value is None else f"{error.field} = {error.value}"
    return f"error: {found}: {error.problem}\n  fix: {error.fix}"


def main() -> None:
    """Entry point of the command ``miniverl`` and of ``python -m miniverl``. Always leaves by SystemExit."""
    try:
        app(prog_name="miniverl")
    except MiniverlError as error:
        sys.stdout.flush()
        print(describe(error), file=sys.stderr)
        sys.exit(exit_code(error))
    except (Stopped, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
