"""This file holds gather: a step's groups, complete, scored and durable, in cursor order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from miniverl.contract.parcel import KEPT, Parcel, parcels
from miniverl.contract.policy import PolicySnapshot
from miniverl.contract.request import Sampling, requests_for
from miniverl.data.order import PromptOrder
from miniverl.errors import Stopped
from miniverl.plan.plan import Step
from miniverl.training.roles import Journal, Rewards, Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather:
    """Generates what is missing and hands on what is recorded; nothing reaches the trainer before it is durable."""

    prompts: PromptOrder
    rollout: Rollout
    rewards: Rewards
    journal: Journal
    samples: int
    sampling: Sampling
    run_seed: int
    parcel_tokens: int
    stop: Callable[[], bool]
    """True once the user asked to stop; looked at between parcels."""

    def __call__(self, step: Step, snapshot: PolicySnapshot) -> Iterator[Parcel]:
        wave = self.prompts.take(step.cursor, step.groups)
        recorded = self.journal.find(step.number, snapshot.tensor_digest)  # survivors are not generated again
        for groups in parcels(recorded, budget=self.parcel_tokens):
            self._refuse_when_stopped()
            yield self._parcel(step, groups)
        missing = wave[len(recorded) :]  # parcels become durable in order, so what is recorded is a prefix
        if not missing:
            return
        requests = requests_for(missing, snapshot, samples=self.samples, sampling=self.sampling, run_seed=self.run_seed)
        for groups in self.rollout.generate(requests):
            self._refuse_when_stopped()
            parcel = self._parcel(step, self.rewards.score(groups))
            self.journal.append(parcel)
            yield parcel

    def _parcel(self, step: Step, groups) -> Parcel:
        return Parcel(step=step.number, groups=groups, fates=(KEPT,) * len(groups))

    def _refuse_when_stopped(self) -> None:
        if self.stop():
            raise Stopped
