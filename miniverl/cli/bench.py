"""This file holds the commands ``miniverl bench``: how fast the rollout backends are, and the evidence for it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Measure the rollout backends, and check what was measured.")

Aggregate = Annotated[Path, typer.Argument(metavar="FILE.json", help="What 'miniverl bench rollout --out' wrote.")]


@app.command()
def rollout(
    workload: Annotated[str, typer.Option(help="A YAML file, or the name of a packaged workload: cpu-tiny.")],
    out: Annotated[Path, typer.Option(help="The aggregate; raw files are written beside it.")],
    backend: Annotated[list[str], typer.Option(help="hf_reference, hf_cached or vllm; may be given several times.")],
    model: Annotated[str | None, typer.Option(help="A model folder; the workload's own when not given.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch in this process.")] = 1,
    gpu: Annotated[bool, typer.Option("--gpu", help="Compute on the GPU.")] = False,
    compile_backend: Annotated[bool, typer.Option("--compile", help="Compile the decode steps.")] = False,
) -> None:
    """Measure every cell of a workload by all backends in turn, and write raw files and one aggregate.

    Example: miniverl bench rollout --workload cpu-tiny --backend hf_reference --backend hf_cached --out tiny.json
    """
    import torch

    from miniverl.bench.candidate import Bench
    from miniverl.bench.evidence import header, write
    from miniverl.bench.measure import measure
    from miniverl.bench.workload import load_workload, refuse_unknown_backends
    from miniverl.errors import ConfigError
    from miniverl.plan.architecture import refuse_foreign_layers
    from miniverl.plan.identity import identify
    from miniverl.plan.plan import DeviceShare

    refuse_unknown_backends(backend)
    asked = load_workload(workload)
    name = model or asked.model
    if name is None:
        raise ConfigError("--model", problem=f"{asked.name} names no model", fix="name a model folder")
    torch.set_num_threads(threads)
    found = identify(name, field="--model")
    refuse_foreign_layers(found, field="--model")
    share = DeviceShare(gpu=1.0 if gpu else 0.0, cpu=1.0, threads=threads)
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(workload=asked, model=found, share=share, compile_backend=compile_backend, scratch=Path(scratch))
        raws = measure(bench, backend, say=typer.echo)
    facts = header(threads=threads, model=found.id, revision=found.revision, compile_backend=compile_backend)
    _tell(write(out, asked.model_dump(mode="json"), raws, facts)["gates"])


@app.command()
def check(file: Aggregate) -> None:
    """Make the aggregate again from its raw files, compare every byte, judge its gates. Exit code 1 if one fails."""
    from miniverl.bench import evidence
    from miniverl.bench.gates import failed

    found = evidence.check(file)
    _tell(found["gates"])
    if missed := failed(found["gates"]):
        typer.echo(f"{len(missed)} of {len(found['gates'])} gates fail")
        raise typer.Exit(1)


@app.command()
def report(file: Aggregate) -> None:
    """Write the aggregate as a page of Markdown to stdout."""
    from miniverl.bench import evidence
    from miniverl.bench.report import page

    typer.echo(page(evidence.check(file)), nl=False)


@app.command()
def cycle(
    recipe: Annotated[str, typer.Argument(help="A YAML file, or the name of a packaged recipe.")] = "quickstart",
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps to train.")] = 10,
) -> None:
    """Train a few steps in this process and show what every call of the training loop costs, as JSON.

    Example: miniverl bench cycle quickstart rollout.samples_per_prompt=4
    """
    from miniverl.bench.cycle import cycle as measure_cycle
    from miniverl.plan.compile import compile_plan
    from miniverl.recipe.load import load_recipe

    alone = ["trainer.test_freq=0", "trainer.val_before_train=false", "trainer.save_freq=0", "data.val_files=[]"]
    words = [*alone, f"trainer.total_training_steps={steps}", *(overrides or ())]
    with tempfile.TemporaryDirectory() as folder:
        spent = measure_cycle(compile_plan(load_recipe(recipe, words), run_dir=folder))
    typer.echo(json.dumps(spent, indent=2))


def _tell(gates: list[dict[str, object]]) -> None:
    for gate in gates:
        verdict = "holds" if gate["passed"] else "FAILS" if gate["purpose"] == "required" else "not selected"
        typer.echo(f"{verdict:<13}{gate['name']}: found {gate['found']}, needed {gate['needed']}")
