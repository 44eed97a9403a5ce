"""This file holds the roles as protocols: the page calls them, in one process or over actors, and cannot tell which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from miniverl.contract.group import Group
from miniverl.contract.parcel import Parcel
from miniverl.contract.policy import Policy
from miniverl.contract.prompt import Prompt
from miniverl.contract.report import Checkpoint, Evaluation, KeptGroup, StepReport
from miniverl.contract.request import GenerationRequest, Sampling
from miniverl.contract.scores import Scores
from miniverl.contract.targets import TeacherTargets
from miniverl.record.facts import Facts


class Trainer(Protocol):
    """Owns the trained weights, the optimizer and the policy version."""

    def restore(self, folder: str | None) -> None:
        """Takes up the checkpoint in ``folder`` (absolute); None: the untrained student, version 0."""

    def policy(self) -> Policy:
        """The snapshot and tensors of the version in force."""

    def begin(self, step: int) -> None:
        """Forgets an earlier, unfinished attempt at the step."""

    def add(self, parcel: Parcel, targets: TeacherTargets | None) -> None:
        """Backward at once: no objective here needs a statistic of the whole step."""

    def score(self, parcel: Parcel, temperature: float) -> Scores:
        """Log-probs of the parcel's response tokens at this temperature (> 0), under the policy in force, without
        dropout. Changes nothing."""

    def update(self, step: int, expected: Sequence[KeptGroup]) -> StepReport:
        """1..k optimizer updates, all or nothing, on exactly the expected groups; version v becomes v + 1.

        A step that is finished returns its stored report.
        """

    def save(self, step: int, facts: Facts, scheduled: bool) -> Checkpoint:
        """Writes a checkpoint folder. It exists only once the journal names it."""

    def export(self, folder: str) -> None:
        """Writes a plain PEFT folder, or full weights, that other programs load."""


class Rollout(Protocol):
    """Owns the engine."""

    def synchronize(self, policy: Policy) -> None:
        """Other identities are refused from here on."""

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[Group, ...]]:
        """Complete groups in cursor order, cut into parcels."""

    def metrics(self) -> Mapping[str, float]:
        """Counters of the engine since it started."""


class Teacher(Protocol):
    def score(self, parcel: Parcel) -> TeacherTargets | None:
        """Targets for every response token of the kept groups; over actors a handle that ``Trainer.add`` takes."""

    def evaluate(self, prompts: Sequence[Prompt], sampling: Sampling) -> tuple[Group, ...]:
        """The teacher's own answers, through the same engine class on its weights."""


class Rewards(Protocol):
    def score(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """The groups with their rewards; as they are where the objective needs none."""


class Journal(Protocol):
    """Owns the run's file. What it does not name does not exist."""

    def find(self, step: int, tensor_digest: str) -> tuple[Group, ...]:
        """Recorded groups of a step under this version, tensors and experiment, in cursor order."""

    def append(self, parcel: Parcel) -> None:
        """One transaction: all groups of the parcel, or none. The same group again changes nothing."""

    def kept(self, step: int) -> tuple[KeptGroup, ...]:
        """Kept groups of the step in cursor order."""

    def close(self, report: StepReport) -> None:
        """The step has happened. A row from an earlier life must match."""

    def note(self, step: int, facts: Mapping[str, object]) -> None:
        """Timings and other facts that may differ between equal runs; merged into the side table."""

    def facts_at(self, step: int) -> Facts:
        """Row count, chain head and cursor when the step was closed; step 0: before training."""

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Named checkpoints, newest first."""

    def commit(self, checkpoint: Checkpoint) -> None:
        """The checkpoint exists now."""

    def record_evaluation(self, evaluation: Evaluation) -> None:
        """The same evaluation again changes nothing."""

    def evaluations(self) -> tuple[Evaluation, ...]: ...

    def reports(self) -> tuple[StepReport, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Who plays which part: objects of this process, or proxies of actors."""

    trainer: Trainer
    rollout: Rollout
    teacher: Teacher
    rewards: Rewards
    journal: Journal
