"""This file holds Conformance: the probes that show whether the rollout engine samples from the trainer's policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import chain

import numpy as np

from miniverl.contract.arrays import valid
from miniverl.contract.event import NOTE, Event
from miniverl.contract.parcel import KEPT, Parcel
from miniverl.contract.policy import Policy
from miniverl.contract.request import Sampling, requests_for
from miniverl.data.order import PromptOrder
from miniverl.errors import ConformanceError
from miniverl.plan.plan import ModelPlan, Plan
from miniverl.record.reader import PROBE
from miniverl.seeds import derive_seed
from miniverl.training.mismatch import Mismatch, mismatch
from miniverl.training.roles import Roles

PROMPTS, TOKENS = 8, 64
"""Of a probe: prompts, and response tokens of each at most."""

PASS, CORRECTED, REFUSED = "pass", "corrected", "refused"
"""Outcomes: as close as rounding allows; far enough to need importance weights; something is broken."""

BROKEN_PROBABILITY, BROKEN_K3 = 0.01, 1e-2
"""Mean difference of a probability, and nats per token, beyond which no rounding explains it."""

STRICT = {"float32": 2e-4, "bfloat16": 2e-3, "nf4": 1e-2}
"""Nats; largest difference on greedy tokens that ``conformance: strict`` lets pass, by the precision of the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Tokens that the engine drew, as the engine and the trainer judge them."""

    temperature: float
    """Of the draw; 0 is greedy, judged at temperature 1."""
    top_p: float
    top_k: int
    engine: Mismatch
    """The trainer's log-probs against the engine's."""
    floor: Mismatch
    """The trainer's own noise: its log-probs in micro-batches against those of each row by itself."""
    unlikeliest: int
    """Tokens that are not the trainer's likeliest; 0 is expected of greedy ones alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the probes found about one policy version."""

    version: int
    outcome: str
    """pass, corrected or refused; judged by the sampled probe."""
    sampled: Probe
    greedy: Probe


class Conformance:
    """Probes the policy that this process starts from, and the one after its first update.

    The tokens are seeded by names of their own, recorded nowhere and learned from by nobody.
    """

    def __init__(self, plan: Plan, *, prompts: PromptOrder, start: int, say: Callable[[Event], None]) -> None:
        self._plan, self._start, self._say = plan, start, say
        self._prompts = prompts.take(0, PROMPTS)
        self._seed = derive_seed("conformance", plan.seed)

    def probe_if_due(self, version: int, roles: Roles) -> None:
        """Raises ConformanceError when the engine's log-probs are not the trainer's, beyond what the loss can bear."""
        left = self._start < self._plan.schedule.total_training_steps
        if not left or version not in (self._start, self._start + 1):
            return
        found = self._find(roles)
        refuse(found, self._plan)
        roles.journal.note(version, {PROBE: asdict(found)})
        self._say(Event(kind=NOTE, text=described(found, self._plan), step=version))

    def _find(self, roles: Roles) -> Finding:
        policy = roles.trainer.policy()
        roles.rollout.synchronize(policy)
        tokens = min(TOKENS, self._plan.sampling.max_new_tokens)
        sampling = replace(self._plan.sampling, max_new_tokens=tokens, logprobs=True)
        sampled = self._probe(policy, sampling, roles)
        if sampled is None:  # the engine knows only what top-p and top-k left: the same policy is compared without them
            sampled = self._probe(policy, replace(sampling, top_p=1.0, top_k=0), roles)
        greedy = self._probe(policy, replace(sampling, temperature=0.0), roles)
        assert sampled is not None and greedy is not None, "an engine scores what it draws from the whole vocabulary"
        outcome = judge(sampled, self._plan.trainer.model)
        return Finding(version=policy.snapshot.version, outcome=outcome, sampled=sampled, greedy=greedy)

    def _probe(self, policy: Policy, sampling: Sampling, roles: Roles) -> Probe | None:
        """None: the engine gave no log-probs of the whole vocabulary."""
        requests = requests_for(self._prompts, policy.snapshot, samples=1, sampling=sampling, run_seed=self._seed)
        groups = tuple(chain.from_iterable(roles.rollout.generate(requests)))
        columns = [valid(group.logps, group.lengths) for group in groups if group.logps is not None]
        if len(columns) < len(groups):
            return None
        parcel = Parcel(step=policy.snapshot.version + 1, groups=groups, fates=(KEPT,) * len(groups))
        own = roles.trainer.score(parcel, sampling.scoring_temperature)
        tokens = np.concatenate([valid(group.token_ids, group.lengths) for group in groups])
        return Probe(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            top_k=sampling.top_k,
            engine=mismatch(own.packed, np.concatenate(columns)),
            floor=mismatch(own.packed, own.alone),
            unlikeliest=int((tokens != own.likeliest).sum()),
        )


def judge(sampled: Probe, model: ModelPlan) -> str:
    """The outcome. Float32 has to agree in every token; what rounds more, on average and against the own noise."""
    found, floor = sampled.engine, sampled.floor
    if not (found.probability <= BROKEN_PROBABILITY and found.k3 <= BROKEN_K3):  # also what is not a number
        return REFUSED
    if precision(model) == "float32":
        close = found.max <= max(5e-5, 10 * floor.max)
    else:
        close = found.mean <= max(5e-3, 2 * floor.mean) and found.k3 <= 2e-3
    return PASS if close else CORRECTED


def precision(model: ModelPlan) -> str:
    """float32, bfloat16 or nf4: whose limits hold."""
    return "nf4" if model.quantization == "nf4" else model.dtype


def refuse(found: Finding, plan: Plan) -> None:
    """Raises ConformanceError for what is broken, what the loss cannot bear, and what is beyond the strict limits."""
    sampled, greedy, objective = found.sampled, found.greedy, plan.trainer.objective
    limit = STRICT[precision(plan.trainer.model)]
    if found.outcome == REFUSED:
        judged, problem, fix = (
            sampled,
            "these are two policies: rounding explains a mean probability difference of"
            f" {BROKEN_PROBABILITY:g} and a k3 of {BROKEN_K3:g} at most",
            "set rollout.backend: hf_reference, which shares no code with the others, to see which side is wrong",
        )
    elif found.outcome == CORRECTED and objective.name == "sampled_k1" and objective.rollout_is is None:
        judged, problem, fix = (
            sampled,
            "that is more than rounding, and sampled_k1 depends on how the tokens were drawn",
            "set distillation.rollout_is: token",
        )
    elif plan.conformance == "strict" and (greedy.unlikeliest or not greedy.engine.max <= limit):
        judged, problem, fix = (
            greedy,
            f"conformance: strict wants greedy log-probs within {limit:g} and the trainer's likeliest tokens, and"
            f" {greedy.unlikeliest} are others",
            "set rollout.conformance: gate, which judges tokens as the run draws them",
        )
    else:
        return
    where = f"rollout.backend {plan.rollout.backend} against the trainer, policy version {found.version}"
    raise ConformanceError(where, value=_figures(judged), problem=problem, fix=fix)


def described(found: Finding, plan: Plan) -> str:
    """One line for whoever watches."""
    judged, noise = found.sampled.engine, found.sampled.floor
    line = (
        f"rollout engine at version {found.version}: {found.outcome}; log-probs of {judged.tokens} tokens differ by"
        f" {judged.max:.2g} at most, {judged.mean:.2g} on average; the trainer's own noise {noise.max:.2g},"
        f" {noise.mean:.2g}"
    )
    if found.outcome == CORRECTED:
        line += {
            "gkd": "; the loss of gkd does not depend on them",
            "sampled_k1": "; distillation.rollout_is corrects that",
        }[plan.trainer.objective.name]
    return line


def _figures(probe: Probe) -> str:
    found, noise = probe.engine, probe.floor
    return (
        f"{found.tokens} tokens at temperature {probe.temperature:g}, top_p {probe.top_p:g}, top_k {probe.top_k}:"
        f" log-probs differ by {found.max:.2g} at most, {found.mean:.2g} on average (the trainer's own noise"
        f" {noise.max:.2g}, {noise.mean:.2g}), k3 {found.k3:.2g}, probabilities by {found.probability:.2g}"
    )
