"""This file holds the command ``miniverl run``: a recipe, from its first line to the figures at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from miniverl.errors import Stopped

if TYPE_CHECKING:
    from miniverl.plan.plan import Plan

CONTINUES = "the same command continues it"


def run(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a packaged recipe such as quickstart.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=VALUE]...", help="Changes to the recipe: rollout.temperature=0.7, ~optim.lr (its default)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and stop: starts and writes nothing.")
    ] = False,
    output_dir: Annotated[
        str | None, typer.Option("--output-dir", "-o", help="Run directory; run.dir of the recipe when not given.")
    ] = None,
    rollout_backend: Annotated[
        str | None,
        typer.Option("--rollout-backend", help="Short for rollout.backend=NAME."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The figures of the run as JSON on stdout; progress goes to stderr.")
    ] = False,
) -> None:
    """Train as a recipe says. The same command again continues the same run, wherever it was stopped.

    Ctrl-C stops at the next parcel and keeps the last closed step; a second Ctrl-C leaves at once. Ray is started for
    the run and ended with it, unless RAY_ADDRESS or ray.address names a Ray that is there.

    Example: miniverl run quickstart optim.lr=3e-4 -o runs/slower
    """
    console = Console(stderr=as_json)
    say_line(console, f"miniverl: reading {recipe} and its data")
    plan = planned(recipe, with_backend(overrides, rollout_backend), output_dir)
    facts = perform(plan, console, dry_run=dry_run)
    if as_json and facts is not None:
        from miniverl.report import inspect as report

        typer.echo(report.as_json(facts))


def planned(recipe: str, overrides: Sequence[str], output_dir: str | None) -> Plan:
    """The plan of the recipe. Imported here: the first line is on the screen before anything heavy is read."""
    from miniverl.plan.compile import compile_plan
    from miniverl.recipe.load import load_recipe

    return compile_plan(load_recipe(recipe, overrides), run_dir=output_dir)


def with_backend(overrides: Sequence[str] | None, backend: str | None) -> list[str]:
    """The overrides, and last the one that --rollout-backend stands for."""
    return [*(overrides or ()), *([f"rollout.backend={backend}"] if backend is not None else [])]


def perform(plan: Plan, console: Console, *, dry_run: bool = False) -> dict[str, Any] | None:
    """Runs the plan, or says that it is done; the run's figures in the end. None for a dry run."""
    from miniverl.plan.show import describe
    from miniverl.report.inspect import inspect_run

    for line in describe(plan):
        say_line(console, line)
    if dry_run:
        return None
    began = time.monotonic()
    if is_finished(plan):
        say_line(console, f"this run is finished already; start anew with another -o DIR, or remove {plan.run_dir}")
    else:
        _train(plan, console)
        say_line(console, f"finished after {time.monotonic() - began:.0f} s")
    facts = inspect_run(plan.run_dir)
    for line in outcome(facts, plan):
        say_line(console, line)
    return facts


def is_finished(plan: Plan) -> bool:
    """Whether the run directory holds this very run, done to the last step of the plan."""
    from actors.drive import holds_run
    from miniverl.report.inspect import FINISHED, inspect_run

    if plan.resume != "auto" or not holds_run(plan.run_dir):
        return False
    facts = inspect_run(plan.run_dir)
    done = facts["steps"]["done"] >= plan.schedule.total_training_steps
    return done and facts["state"] == FINISHED and facts["digests"]["experiment"] == plan.experiment


def _train(plan: Plan, console: Console) -> None:
    from actors.drive import run_over_actors
    from miniverl.cli.progress import progress

    try:
        with progress(console, steps="console" in plan.tracking.sinks) as say:
            run_over_actors(plan, say=say)
    except Stopped:
        say_line(console, f"stopped; {CONTINUES}")
        raise
    except KeyboardInterrupt:
        say_line(console, f"left at once; {CONTINUES} from what is on disk")
        raise


def outcome(facts: dict[str, Any], plan: Plan) -> list[str]:
    """What the run was for: accuracies, and where the result lies."""
    names = {"teacher": "teacher", "student_before": "student before", "student_after": "student after"}
    lines = [
        f"{words:<15} {found['accuracy']:7.2%} of {found['n']} held-out prompts exact"
        for name, words in names.items()
        if (found := facts["evaluation"].get(name)) is not None
    ]
    kind = "weights" if plan.trainer.model.lora is None else "adapter"
    return [*lines, f"the {kind} of the student is in {plan.run_dir}/final; more in: miniverl inspect {plan.run_dir}"]


def say_line(console: Console, text: str) -> None:
    """A plain line, on the screen at once."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.file.flush()
