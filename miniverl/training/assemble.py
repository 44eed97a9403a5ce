"""This file holds the assembly of a run: plan, roles and what the run directory already holds, reconciled."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from miniverl.contract.event import NOTE, Event
from miniverl.contract.prompt import Prompt
from miniverl.contract.report import Checkpoint
from miniverl.data.order import PromptOrder
from miniverl.data.prompts import file_sha256, read_prompts
from miniverl.data.template import ChatTemplate
from miniverl.errors import DataError, RecordError
from miniverl.metrics.sinks import JsonlSink, Metrics, Sink, WandbRun, WandbSink, recorded_rows
from miniverl.plan.plan import DataPlan, Plan
from miniverl.record.checkpoint import sweep, verify_checkpoint
from miniverl.record.files import write_atomically
from miniverl.record.rundir import RunDirectory
from miniverl.training.checkpoints import Checkpoints
from miniverl.training.conformance import Conformance
from miniverl.training.evaluate import Evaluator
from miniverl.training.gather import Gather
from miniverl.training.roles import Roles
from miniverl.training.run import Clock, Run

Say = Callable[[Event], None]


def assemble(
    plan: Plan, roles: Roles, *, stop: Callable[[], bool], say: Say, environ: Mapping[str, str] = MappingProxyType({})
) -> Run:
    """A run ready for the page: data read and compared with the plan, trainer at the newest checkpoint that holds.

    Steps closed after that checkpoint are run again by the page from their recorded groups: nothing is regenerated.
    ``environ``: where the WANDB_* variables are looked up.
    """
    train = read_planned(plan.train_data)
    held_out = read_planned(plan.evaluation_data)[: plan.evaluation_prompts] if plan.evaluation_data else ()
    prompts = PromptOrder(train, shuffle=plan.order.shuffle, seed=plan.order.seed)
    start = take_up(plan, roles, say=say)
    return Run(
        plan=plan,
        roles=roles,
        gather=Gather(
            prompts=prompts,
            rollout=roles.rollout,
            rewards=roles.rewards,
            journal=roles.journal,
            samples=plan.samples_per_prompt,
            sampling=plan.sampling,
            run_seed=plan.seed,
            parcel_tokens=plan.rollout.parcel_tokens,
            stop=stop,
        ),
        checkpoints=Checkpoints(plan, trainer=roles.trainer, journal=roles.journal, say=say),
        conformance=Conformance(plan, prompts=prompts, start=start, say=say),
        evaluator=Evaluator(held_out, sampling=plan.evaluation_sampling, schedule=plan.schedule, run_seed=plan.seed),
        metrics=sinks_for(plan, roles, say=lambda text: say(Event(kind=NOTE, text=text)), environ=environ),
        say=say,
        clock=Clock(),
        start=start,
        cursor=roles.journal.facts_at(start).cursor,
    )


def sinks_for(plan: Plan, roles: Roles, *, say: Callable[[str], None], environ: Mapping[str, str]) -> Metrics:
    """metrics.jsonl always; W&B when the recipe names it. Both take up what the journal already holds."""
    reports, evaluations = roles.journal.reports(), roles.journal.evaluations()
    sinks: list[Sink] = [JsonlSink(RunDirectory(root=Path(plan.run_dir)).metrics, reports, evaluations)]
    if "wandb" in plan.tracking.sinks:
        run = WandbRun(
            project=plan.tracking.project,
            name=plan.tracking.experiment_name,
            id=wandb_id(Path(plan.run_dir)),
            config=plan.experiment_facts,
        )
        recorded = recorded_rows(reports, evaluations)
        sinks.append(WandbSink(run, folder=plan.run_dir, environ=environ, recorded=recorded, say=say))
    return Metrics(sinks, logged=[report.step for report in reports])


def wandb_id(run_dir: Path) -> str:
    """The W&B run of this run directory: drawn once, kept beside the journal, gone when the directory is emptied."""
    path = run_dir / "wandb-run-id"
    if not path.exists():
        write_atomically(path, secrets.token_hex(4).encode())
    return path.read_text()


def read_planned(plan: DataPlan) -> tuple[Prompt, ...]:
    """The prompts the plan was made for. Raises DataError when a file has changed since."""
    for file in plan.files:
        if file_sha256(Path(file.path)) != file.sha256:
            raise DataError(file.path, problem="changed since the plan was made", fix="start the command again")
    prompts = read_prompts(
        [Path(file.path) for file in plan.files],
        template=ChatTemplate(Path(plan.tokenizer_path)),
        prompt_key=plan.prompt_key,
        max_prompt_length=plan.max_prompt_length,
        truncation=plan.truncation,
        filter_overlong_prompts=plan.filter_overlong_prompts,
    )
    return prompts.prompts


def take_up(plan: Plan, roles: Roles, *, say: Say) -> int:
    """Restores the trainer from the newest named checkpoint that verifies; says so when an older one must do.

    ``run.resume: PATH`` takes that one or none. Returns the steps that policy has finished; 0 is the untrained student.
    """
    named = roles.journal.checkpoints()
    sweep(plan.run_dir, named)
    for checkpoint in _asked_for(plan, named):
        try:
            verify_checkpoint(plan.run_dir, checkpoint)
        except RecordError as error:
            say(Event(kind=NOTE, text=f"{error}; trying the checkpoint before it"))
            continue
        roles.trainer.restore(str(Path(plan.run_dir) / checkpoint.folder))
        _say_where_it_continues(roles, checkpoint, say)
        return checkpoint.step
    roles.trainer.restore(None)
    return 0


def _asked_for(plan: Plan, named: tuple[Checkpoint, ...]) -> tuple[Checkpoint, ...]:
    """All of them, newest first, or the one the recipe names. Raises RecordError if that one is missing or damaged."""
    if plan.resume in ("auto", "never"):
        return named
    asked = Path(plan.resume).resolve()
    for checkpoint in named:
        if (Path(plan.run_dir) / checkpoint.folder).resolve() == asked:
            verify_checkpoint(plan.run_dir, checkpoint)
            return (checkpoint,)
    raise RecordError(
        "run.resume", value=plan.resume, problem="is not a checkpoint of this run",
        fix=f"write auto, or one of {', '.join(one.folder for one in named) or 'those it will have'} in {plan.run_dir}",
    )  # fmt: skip


def _say_where_it_continues(roles: Roles, checkpoint: Checkpoint, say: Say) -> None:
    closed = len(roles.journal.reports())
    replay = f", replaying {closed - checkpoint.step} recorded steps" if closed > checkpoint.step else ""
    say(Event(kind=NOTE, text=f"continuing after step {checkpoint.step}{replay}", step=checkpoint.step))
