"""This file holds the commands ``miniverl vllm``: an environment for the vLLM backend, and what runs in it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Prepare and look after the vLLM backend (rollout.backend: vllm).")


@app.command()
def setup(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="Where; beside this environment when not given.")
    ] = None,
) -> None:
    """Install vLLM into an environment of its own, and record it for rollout.backend: vllm.

    With an NVIDIA driver vLLM's build for CUDA, else its build for the CPU. Does nothing when it is there already.
    """
    from miniverl.engines.vllm.install import set_up

    here = folder if folder is not None else Path(f"{sys.prefix}-vllm")
    set_up(here.expanduser().absolute(), cuda=shutil.which("nvidia-smi") is not None, say=typer.echo)


@app.command()
def status(run: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]) -> None:
    """Show the processes of a run's vLLM server that are alive."""
    from miniverl.engines.vllm import leash

    alive = leash.living(run / "vllm" / "processes.json")
    typer.echo(f"alive: {', '.join(map(str, alive))}" if alive else "no process of a vLLM server is alive")
