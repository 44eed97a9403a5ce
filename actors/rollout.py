"""This file holds RolloutActor: the process that owns the engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import ray
from ray.actor import ActorHandle

from actors.shell import Shell, bound_threads, served
from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest
from miniverl.errors import Stopped
from miniverl.plan.plan import RolloutPlan


class RolloutActor(Shell):
    def __init__(self, plan: RolloutPlan) -> None:
        super().__init__("rollout")
        self._plan = plan

    @served
    def start(self, controller: ActorHandle) -> None:
        self._push_pulses(controller)
        bound_threads(self._plan.share.threads)
        from miniverl.training.rollout import EngineRollout  # the driver reads this file and must stay free of torch

        self._rollout = EngineRollout(self._plan)

    @served
    def synchronize(self, snapshot: PolicySnapshot, tensors: Mapping[str, np.ndarray]) -> None:
        self._rollout.synchronize(Policy(snapshot=snapshot, tensors=tensors))

    @ray.method(num_returns="streaming")
    @served
    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[Group, ...]]:
        """Runs ahead of whoever listens: nothing holds decoding back but the end of the step.

        Raises Stopped between two parcels; ending quietly would look like a smaller step.
        """
        for groups in self._rollout.generate(requests):
            yield groups
            if self._vitals.stopping.is_set():
                raise Stopped

    @served
    def metrics(self) -> Mapping[str, float]:
        return self._rollout.metrics()
