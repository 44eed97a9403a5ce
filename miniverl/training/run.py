"""This file holds Run: the roles, the data and the cadence that the page reads from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from miniverl.contract.event import STEP, Event
from miniverl.contract.report import StepReport
from miniverl.metrics import declared
from miniverl.metrics.sinks import Metrics
from miniverl.plan.plan import Plan, Step
from miniverl.training.checkpoints import Checkpoints
from miniverl.training.evaluate import Evaluator
from miniverl.training.gather import Gather
from miniverl.training.roles import Journal, Rewards, Rollout, Teacher, Trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Who plays which part: objects of this process, or proxies of actors."""

    trainer: Trainer
    rollout: Rollout
    teacher: Teacher
    rewards: Rewards
    journal: Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything the page needs, whole from birth."""

    plan: Plan
    roles: Roles
    gather: Gather
    checkpoints: Checkpoints
    evaluator: Evaluator
    metrics: Metrics
    say: Callable[[Event], None]
    clock: Clock
    start: int
    """Steps finished by the policy the trainer took up."""
    cursor: int
    """Prompts taken by those steps."""

    @property
    def final_folder(self) -> str:
        return str(Path(self.plan.run_dir) / "final")

    def steps(self) -> Iterator[Step]:
        """What is left to do."""
        for step in self.plan.steps(after=self.start, cursor=self.cursor):
            self.clock.start()
            yield step

    def evaluate_if_due(self, step: int) -> None:
        roles = self.roles
        self.evaluator.run_if_due(
            step, trainer=roles.trainer, rollout=roles.rollout, teacher=roles.teacher, journal=roles.journal,
            say=self.say,
        )  # fmt: skip

    def log(self, report: StepReport) -> None:
        """Console, metrics.jsonl and W&B; what may differ between equal runs goes to the journal's side table."""
        side = {declared.TIME_STEP.name: self.clock.lap(), **self.roles.rollout.metrics()}
        self.roles.journal.note(report.step, side)
        self.metrics.log(report.step, report.metrics)
        total = self.plan.schedule.total_training_steps
        self.say(Event(kind=STEP, text=f"step {report.step}", step=report.step, total=total,
                       values={**report.metrics, **side}))  # fmt: skip

    def save_after_stop(self) -> None:
        """A checkpoint of the last closed step: what a user who stops a run expects to keep."""
        self.checkpoints.save(self.roles.trainer.policy().snapshot.version, scheduled=False)


class Clock:
    """Seconds since the step at hand began."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def start(self) -> None:
        self._began = time.monotonic()

    def lap(self) -> float:
        return time.monotonic() - self._began
