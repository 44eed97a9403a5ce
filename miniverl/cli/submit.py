"""This file holds the command ``miniverl submit``: a recipe as a job of a running Ray."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from miniverl.cli.run import planned

ADDRESS = "http://127.0.0.1:8265"


def submit(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a packaged recipe such as quickstart.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Changes to the recipe.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(help=f"Ray's job API; RAY_ADDRESS when not given, else {ADDRESS}.")
    ] = None,
    output_dir: Annotated[
        str | None, typer.Option("--output-dir", "-o", help="Run directory; run.dir of the recipe when not given.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Follow the job's output; leave with its exit code.")] = False,
) -> None:
    """Hand a run to a Ray that is already running, and leave. Closing this terminal does not end the job.

    The job runs this interpreter in this folder, so paths mean what they mean here. Of this shell's environment only
    HF_* and WANDB_* settings and PYTHONPATH travel with it; keys, tokens and proxies do not, set them where Ray was
    started.

    Example: miniverl submit quickstart --wait
    """
    typer.echo(f"miniverl: reading {recipe} and its data")
    plan = planned(recipe, overrides or (), output_dir)
    from actors.jobs import follow, submit_run

    words = [recipe, *(overrides or ()), f"run.dir={plan.run_dir}"]
    job = submit_run(words, address=address or _from_environment() or ADDRESS, shell=os.environ)
    typer.echo(f"job {job.id} at {job.address}, run directory {plan.run_dir}")
    typer.echo(f"follow: ray job logs --address {job.address} --follow {job.id}")
    typer.echo(f"figures: miniverl inspect {plan.run_dir}")
    if wait:
        raise typer.Exit(follow(job, write=lambda text: typer.echo(text, nl=False)))


def _from_environment() -> str | None:
    """The first that names a job API; RAY_ADDRESS may name a Ray head instead, which is something else."""
    named = (os.environ.get(name, "") for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"))
    return next((address for address in named if address.startswith("http")), None)
