"""This file holds EngineRollout: an engine that hands over complete groups in cursor order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from miniverl.contract.group import Group
from miniverl.contract.parcel import parcels
from miniverl.contract.policy import Policy
from miniverl.contract.request import GenerationRequest
from miniverl.data.template import ChatTemplate
from miniverl.engines.base import Engine
from miniverl.engines.cached.engine import CachedEngine
from miniverl.engines.reference import ReferenceEngine
from miniverl.engines.vllm.engine import VllmEngine
from miniverl.errors import ConformanceError
from miniverl.models.adapter import largest_b
from miniverl.models.device import device_for
from miniverl.models.mirror import Mirror
from miniverl.plan.plan import RolloutPlan

NEGLIGIBLE = 1e-6
"""An adapter whose B has no larger entry may round away altogether."""


class EngineRollout:
    """Owns one engine. A group that finishes early waits for those before it: order never depends on speed."""

    def __init__(self, plan: RolloutPlan) -> None:
        self._plan = plan
        self._engine = BACKENDS[plan.backend](plan)
        self._probed = ""

    def synchronize(self, policy: Policy) -> None:
        """Raises ConformanceError when the adapter does nothing: loaded and not used is easily missed."""
        self._engine.synchronize(policy)
        if policy.snapshot.digest != self._probed:
            _refuse_idle_adapter(self._engine.adapter_effect(), policy)
            self._probed = policy.snapshot.digest

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[Group, ...]]:
        order = list(dict.fromkeys(request.group_id for request in requests))
        return parcels(_in_order(self._engine.generate(requests), order), budget=self._plan.parcel_tokens)

    def metrics(self) -> Mapping[str, float]:
        return self._engine.metrics()

    def close(self) -> None:
        self._engine.close()


def _refuse_idle_adapter(effect: float | None, policy: Policy) -> None:
    if effect == 0.0 and largest_b(policy.tensors) > NEGLIGIBLE:
        raise ConformanceError(
            f"rollout.adapter of policy version {policy.snapshot.version}", value=effect,
            problem="changes no log-prob: the engine samples from the base model, but the trainer's LoRA is not zero",
            fix="check that rollout.backend applies LoRA to every layer of models.student.lora.target_modules",
        )  # fmt: skip


def _in_order(groups: Iterable[Group], order: list[str]) -> Iterator[Group]:
    """The groups in the given order, each as soon as all before it are there."""
    early: dict[str, Group] = {}
    waiting = iter(order)
    awaited = next(waiting, None)
    for group in groups:
        early[group.id] = group
        while awaited in early:
            yield early.pop(awaited)
            awaited = next(waiting, None)
    assert awaited is None and not early, "an engine returns every group it was asked for"


def _cached(plan: RolloutPlan) -> Engine:
    return CachedEngine(
        Mirror(plan.model, device=device_for(plan.share)),
        decode=ChatTemplate(plan.model.path).decode,
        slots=plan.slots,
        max_length=plan.max_length,
        deterministic=plan.deterministic,
        compiled=plan.compile_backend,
    )


def _reference(plan: RolloutPlan) -> Engine:
    return ReferenceEngine(
        Mirror(plan.model, device=device_for(plan.share)), decode=ChatTemplate(plan.model.path).decode
    )


def _vllm(plan: RolloutPlan) -> Engine:
    return VllmEngine(plan, decode=ChatTemplate(plan.model.path).decode)


BACKENDS: dict[str, Callable[[RolloutPlan], Engine]] = {
    "hf_cached": _cached,
    "hf_reference": _reference,
    "vllm": _vllm,
}
