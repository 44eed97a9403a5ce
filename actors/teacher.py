"""This file holds TeacherActor: the process that judges the student's tokens."""

from __future__ import annotations

from collections.abc import Sequence

from ray.actor import ActorHandle

from actors.shell import Shell, bound_threads, served
from miniverl.contract.group import Group
from miniverl.contract.parcel import Parcel
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import Sampling
from miniverl.contract.targets import TeacherTargets
from miniverl.plan.plan import TeacherPlan


class TeacherActor(Shell):
    def __init__(self, plan: TeacherPlan) -> None:
        super().__init__("teacher")
        self._plan = plan

    @served
    def start(self, controller: ActorHandle) -> None:
        self._push_pulses(controller)
        bound_threads(self._plan.share.threads)
        from miniverl.training.teacher import ModelTeacher  # the driver reads this file and must stay free of torch

        self._teacher = ModelTeacher(self._plan)

    @served
    def score(self, parcel: Parcel) -> TeacherTargets | None:
        return self._teacher.score(parcel)

    @served
    def evaluate(self, prompts: Sequence[Prompt], sampling: Sampling) -> tuple[Group, ...]:
        return self._teacher.evaluate(prompts, sampling)
