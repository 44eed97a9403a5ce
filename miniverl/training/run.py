"""This file holds Run: the roles, the data and the cadence that the page reads from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from miniverl.contract.event import EVALUATION, NOTE, STEP, Event
from miniverl.contract.report import StepReport
from miniverl.metrics import declared
from miniverl.metrics.sinks import Metrics
from miniverl.plan.plan import Plan, Step
from miniverl.record.rundir import RunDirectory
from miniverl.training.checkpoints import Checkpoints
from miniverl.training.conformance import Conformance
from miniverl.training.evaluate import Evaluator, described
from miniverl.training.gather import Gather
from miniverl.training.roles import Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything the page needs, whole from birth."""

    plan: Plan
    roles: Roles
    gather: Gather
    checkpoints: Checkpoints
    conformance: Conformance
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
        return str(RunDirectory(root=Path(self.plan.run_dir)).final)

    def steps(self) -> Iterator[Step]:
        """What is left to do."""
        for step in self.plan.steps(after=self.start, cursor=self.cursor):
            self.clock.start()
            yield step

    def evaluate_if_due(self, step: int) -> None:
        """What the engine is about to draw is worth something only if it is the trainer's policy: probed first."""
        with self.clock.apart(declared.TIME_EVALUATE.name):
            self.conformance.probe_if_due(step, self.roles)
            for evaluation in self.evaluator.run_if_due(step, self.roles):
                self.metrics.evaluated(evaluation)
                self.say(Event(kind=EVALUATION, text=described(evaluation), step=step,
                               values={"accuracy": evaluation.accuracy, "n": float(evaluation.n)}))  # fmt: skip

    def save_if_due(self, step: int) -> None:
        with self.clock.apart(declared.TIME_SAVE.name):
            self.checkpoints.save_if_due(step)

    def log(self, report: StepReport) -> None:
        """Console, metrics.jsonl and W&B; what may differ between equal runs goes to the journal's side table too."""
        engine = self.roles.rollout.metrics()
        side = self.clock.times()
        if (passes := engine.get("physical_batches")) is not None:  # a server does not tell
            side[declared.PHYSICAL_BATCHES.name] = self.clock.since("physical_batches", passes)
        self.roles.journal.note(report.step, {**side, "engine": engine})
        self.metrics.log(report.step, {**report.metrics, **side})
        if report.skipped:
            self.say(Event(kind=NOTE, text=f"step {report.step}: loss or gradient not finite, update skipped"))
        total = self.plan.schedule.total_training_steps
        self.say(Event(kind=STEP, text=f"step {report.step}", step=report.step, total=total,
                       values={**report.metrics, **side}))  # fmt: skip

    def save_after_stop(self) -> None:
        """A checkpoint of the last closed step: what a user who stops a run expects to keep."""
        self.checkpoints.save(self.roles.trainer.policy().snapshot.version)


class Clock:
    """Seconds of the step at hand; what is measured apart is not counted into the step."""

    def __init__(self) -> None:
        self._counters: dict[str, float] = {}
        self.start()

    def start(self) -> None:
        self._began = time.monotonic()
        self._apart: dict[str, float] = {}

    @contextmanager
    def apart(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._apart[name] = time.monotonic() - began

    def since(self, counter: str, value: float) -> float:
        """How much a counter that never falls has grown since it was last asked for."""
        grown = value - self._counters.get(counter, 0.0)
        self._counters[counter] = value
        return grown

    def times(self) -> dict[str, float]:
        """By metric name."""
        whole = time.monotonic() - self._began
        return {**self._apart, declared.TIME_STEP.name: whole - sum(self._apart.values())}
