"""This file holds the proxies that make an actor's handle a role: the page cannot tell them from plain objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ray import ObjectRef
from ray.actor import ActorHandle

from actors.line import Line
from actors.post import Post, Promise
from miniverl.contract.group import Group
from miniverl.contract.parcel import Parcel
from miniverl.contract.policy import PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.report import Checkpoint, Evaluation, KeptGroup, StepReport
from miniverl.contract.request import GenerationRequest, Sampling
from miniverl.contract.scores import Scores
from miniverl.record.facts import Facts
from miniverl.rewards.none import NoRewards
from miniverl.training.roles import Roles, Rollout, Teacher, Trainer


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePolicy:
    """A policy whose tensors stay in the object store, on their way from the trainer to the rollout."""

    snapshot: PolicySnapshot
    tensors: ObjectRef


class RemoteTrainer:
    """``add`` does not wait: the trainer works while the controller gathers the next parcel."""

    def __init__(self, line: Line, post: Post) -> None:
        self._line, self._post = line, post

    def restore(self, folder: str | None) -> None:
        self._line.call("restore", folder)

    def policy(self) -> RemotePolicy:
        snapshot, tensors = self._line.submit("policy", returns=2)
        return RemotePolicy(snapshot=self._line.wait(snapshot, "policy"), tensors=tensors)

    def begin(self, step: int) -> None:
        self._post.forget()
        self._line.call("begin", step)

    def add(self, parcel: Parcel, targets: Promise | None) -> None:
        """Ray keeps the order of calls, also when the targets of an earlier one are late."""
        self._post.settle_finished()
        handed_on = None if targets is None else targets.reference
        self._post.remember(self._line.promise("add", self._post.parcel(parcel), handed_on, source=targets))

    def score(self, parcel: Parcel, temperature: float) -> Scores:
        return self._line.call("score", parcel, temperature)

    def update(self, step: int, expected: Sequence[KeptGroup]) -> StepReport:
        """Every ``add`` first: Ray skips a call whose argument failed, and the first failure must be the one raised."""
        while outstanding := self._post.promises():
            self._line.until_over(outstanding[0])
            self._post.settle_finished()
        return self._line.call("update", step, expected)

    def save(self, step: int, facts: Facts, scheduled: bool) -> Checkpoint:
        return self._line.call("save", step, facts, scheduled)

    def export(self, folder: str) -> None:
        self._line.call("export", folder)


class RemoteRollout:
    def __init__(self, line: Line) -> None:
        self._line = line

    def synchronize(self, policy: RemotePolicy) -> None:
        self._line.call("synchronize", policy.snapshot, policy.tensors)

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[Group, ...]]:
        return self._line.stream("generate", requests)

    def metrics(self) -> Mapping[str, float]:
        return self._line.call("metrics")


class RemoteTeacher:
    def __init__(self, line: Line, post: Post) -> None:
        self._line, self._post = line, post

    def score(self, parcel: Parcel) -> Promise:
        """The targets never pass through the controller: ``RemoteTrainer.add`` sends the reference on."""
        return self._line.promise("score", self._post.parcel(parcel))

    def evaluate(self, prompts: Sequence[Prompt], sampling: Sampling) -> tuple[Group, ...]:
        return self._line.call("evaluate", prompts, sampling)


class RemoteJournal:
    def __init__(self, line: Line, post: Post) -> None:
        self._line, self._post = line, post

    def find(self, step: int, tensor_digest: str) -> tuple[Group, ...]:
        return self._line.call("find", step, tensor_digest)

    def append(self, parcel: Parcel) -> None:
        self._line.call("append", self._post.parcel(parcel))

    def kept(self, step: int) -> tuple[KeptGroup, ...]:
        return self._line.call("kept", step)

    def close(self, report: StepReport) -> None:
        self._line.call("close", report)

    def note(self, step: int, facts: Mapping[str, object]) -> None:
        self._line.call("note", step, facts)

    def facts_at(self, step: int) -> Facts:
        return self._line.call("facts_at", step)

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        return self._line.call("checkpoints")

    def commit(self, checkpoint: Checkpoint) -> None:
        self._line.call("commit", checkpoint)

    def record_evaluation(self, evaluation: Evaluation) -> None:
        self._line.call("record_evaluation", evaluation)

    def evaluations(self) -> tuple[Evaluation, ...]:
        return self._line.call("evaluations")

    def reports(self) -> tuple[StepReport, ...]:
        return self._line.call("reports")

    def release(self) -> None:
        self._line.call("release")


def remote_roles(actors: Mapping[str, ActorHandle], post: Post) -> Roles:
    """The actors of a run, by role, as the roles of the page. The controller is none of them."""
    lines = {role: Line(role, actor, post) for role, actor in actors.items()}
    # Policies and targets are handles here: the page hands them on and never looks inside.
    return Roles(
        trainer=cast(Trainer, RemoteTrainer(lines["trainer"], post)),
        rollout=cast(Rollout, RemoteRollout(lines["rollout"])),
        teacher=cast(Teacher, RemoteTeacher(lines["teacher"], post)),
        rewards=NoRewards(),
        journal=RemoteJournal(lines["journal"], post),
    )
