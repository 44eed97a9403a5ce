"""This file holds TrainerActor: the process that owns the trained weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import ray
from ray.actor import ActorHandle

from actors.shell import Shell, bound_threads, served
from miniverl.contract.parcel import Parcel
from miniverl.contract.policy import PolicySnapshot
from miniverl.contract.report import Checkpoint, KeptGroup, StepReport
from miniverl.contract.scores import Scores
from miniverl.contract.targets import TeacherTargets
from miniverl.plan.plan import TrainerPlan
from miniverl.record.facts import Facts


class TrainerActor(Shell):
    def __init__(self, plan: TrainerPlan, run_dir: str) -> None:
        super().__init__("trainer")
        self._plan, self._run_dir = plan, run_dir

    @served
    def start(self, controller: ActorHandle) -> None:
        self._push_pulses(controller)
        bound_threads(self._plan.share.threads)
        from miniverl.training.trainer import PolicyTrainer  # the driver reads this file and must stay free of torch

        self._trainer = PolicyTrainer(self._plan, run_dir=self._run_dir)

    @served
    def restore(self, folder: str | None) -> None:
        self._trainer.restore(folder)

    @ray.method(num_returns=2)
    @served
    def policy(self) -> tuple[PolicySnapshot, Mapping[str, np.ndarray]]:
        """Two objects: the controller fetches the snapshot, the tensors go from here to the rollout."""
        policy = self._trainer.policy()
        return policy.snapshot, policy.tensors

    @served
    def begin(self, step: int) -> None:
        self._trainer.begin(step)

    @served
    def add(self, parcel: Parcel, targets: TeacherTargets | None) -> None:
        self._trainer.add(parcel, targets)

    @served
    def score(self, parcel: Parcel, temperature: float) -> Scores:
        return self._trainer.score(parcel, temperature)

    @served
    def update(self, step: int, expected: Sequence[KeptGroup]) -> StepReport:
        return self._trainer.update(step, expected)

    @served
    def save(self, step: int, facts: Facts, scheduled: bool) -> Checkpoint:
        return self._trainer.save(step, facts, scheduled)

    @served
    def export(self, folder: str) -> None:
        self._trainer.export(folder)
