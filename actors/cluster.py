"""This file holds Cluster: the five actors of a run, created and owned by the driver."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ray
from ray import ObjectRef
from ray.actor import ActorHandle
from ray.exceptions import RayActorError

from actors.controller import ControllerActor, Status
from actors.environment import role_variables
from actors.journal import JournalActor, RunRecord
from actors.outcome import fetch
from actors.rollout import RolloutActor
from actors.session import namespace
from actors.teacher import TeacherActor
from actors.trainer import TrainerActor
from miniverl.contract.event import READY, Event
from miniverl.errors import PlacementError, RoleError
from miniverl.plan.placement import refuse_unless_it_fits
from miniverl.plan.plan import Plan

ROOM = 120.0
"""Seconds to wait for a process of each role: other runs may hold what this one needs."""

START = 1800.0
"""Seconds to wait for the roles to load what they need."""

GONE = 20.0
"""Seconds to wait for the actors of a run that was killed a moment ago."""

TICK = 0.5
"""Seconds between two looks at whether the user asked to stop."""

CONTROL = 10.0
"""Seconds for a question to the controller."""

Say = Callable[[Event], None]


class Cluster:
    """Handles by role, in the order they are created. Whoever creates a cluster ends it with ``kill``."""

    def __init__(self, plan: Plan, actors: Mapping[str, ActorHandle]) -> None:
        self._plan, self.actors = plan, actors

    @classmethod
    def create(cls, plan: Plan) -> Cluster:
        """Checks the placement, then asks Ray for a process for each role. Raises PlacementError, RoleError."""
        refuse_unless_it_fits(plan.placement, ray.cluster_resources())
        _refuse_when_alive(plan)
        record = RunRecord(
            run_dir=plan.run_dir, run_id=plan.run_id, experiment=plan.experiment, experiment_facts=plan.experiment_facts
        )
        grouped = ray.remote(concurrency_groups={"control": 2})(ControllerActor)
        return cls(
            plan,
            {
                "controller": _create(plan, "controller", grouped, plan),
                "journal": _create(plan, "journal", ray.remote(JournalActor), record),
                "rollout": _create(plan, "rollout", ray.remote(RolloutActor), plan.rollout),
                "trainer": _create(plan, "trainer", ray.remote(TrainerActor), plan.trainer, plan.run_dir),
                "teacher": _create(plan, "teacher", ray.remote(TeacherActor), plan.teacher),
            },
        )

    def start(self, say: Say) -> None:
        """Waits until every role has a process and has built what it needs; says so for each."""
        began = time.monotonic()
        controller = self.actors["controller"]
        born = {role: actor.born.remote() for role, actor in self.actors.items()}
        starts = {role: actor.start.remote(controller) for role, actor in self.actors.items() if role != "controller"}
        for role in _as_they_come(born, "born", self._refuse_to_wait, ROOM):
            if role == "controller":  # it builds nothing
                say(Event(kind=READY, text=f"{role} ready after {time.monotonic() - began:.1f} s"))
        for role in _as_they_come(starts, "start", _refuse_to_wait_longer, START):
            say(Event(kind=READY, text=f"{role} ready after {time.monotonic() - began:.1f} s"))

    def events(self) -> Iterator[Event | None]:
        """What happens in the run until it ends; None when nothing did for a TICK.

        Raises Stopped after ``stop``, the error a role raised, or the RoleError of a lost one.
        """
        roles = {role: actor for role, actor in self.actors.items() if role != "controller"}
        stream = self.actors["controller"].run.remote(roles)
        while True:
            if not ray.wait([stream], timeout=TICK)[0]:
                yield None
                continue
            reference = next(stream, None)
            if reference is None:
                return
            yield fetch(reference, role="controller", call="run")

    def stop(self) -> None:
        """The run ends at the next parcel, after a checkpoint of the last closed step."""
        fetch(self.actors["controller"].stop.remote(), role="controller", call="stop", within=CONTROL)

    def status(self) -> Status:
        return fetch(self.actors["controller"].status.remote(), role="controller", call="status", within=CONTROL)

    def kill(self) -> None:
        """Ends every process. What matters is on disk."""
        for actor in self.actors.values():
            ray.kill(actor, no_restart=True)

    def _refuse_to_wait(self, missing: list[str]) -> PlacementError:
        free = {name: amount for name, amount in ray.available_resources().items() if name in ("CPU", "GPU")}
        need = {role: (self._plan.placement[role].cpu, self._plan.placement[role].gpu) for role in missing}
        return PlacementError(
            "placement", value=need, problem=f"Ray gave them no process within {ROOM:.0f} s; free now: {free}",
            fix="wait for the other runs of this Ray to end, or lower the shares",
        )  # fmt: skip


def _create(plan: Plan, role: str, kind: Any, *args: object) -> ActorHandle:
    share = plan.placement[role]
    return kind.options(
        name=role,
        namespace=namespace(plan),
        num_cpus=share.cpu,
        num_gpus=share.gpu,
        max_restarts=0,
        max_task_retries=0,
        runtime_env={"env_vars": role_variables(plan, role, os.environ), "py_executable": sys.executable},
    ).remote(*args)


def _as_they_come(
    calls: Mapping[str, ObjectRef], call: str, complain: Callable[[list[str]], Exception], seconds: float
) -> Iterator[str]:
    """Roles in the order in which their calls end. Raises the first failure."""
    waiting = {reference: role for role, reference in calls.items()}
    deadline = time.monotonic() + seconds
    while waiting:
        ready, _ = ray.wait(list(waiting), timeout=TICK)
        for reference in ready:
            role = waiting.pop(reference)
            fetch(reference, role=role, call=call)
            yield role
        if waiting and time.monotonic() > deadline:
            raise complain(list(waiting.values()))


def _refuse_to_wait_longer(missing: list[str]) -> RoleError:
    return RoleError(
        ", ".join(missing),
        problem=f"has not started within {START:.0f} s",
        fix="look at the logs of Ray, then try again",
    )


def _refuse_when_alive(plan: Plan) -> None:
    """A run that was killed takes a few seconds to leave; one that works is refused."""
    deadline = time.monotonic() + GONE
    while (alive := _living(plan)) and time.monotonic() < deadline:
        time.sleep(TICK)
    if alive:
        raise RoleError(
            alive[0], value=plan.run_id, problem=f"this run is alive already, in the namespace {namespace(plan)}",
            fix="wait for it or stop it, or set another run.dir",
        )  # fmt: skip


def _living(plan: Plan) -> list[str]:
    try:
        named = ray.util.list_named_actors(all_namespaces=True)
    except RayActorError:
        return []
    return [entry["name"] for entry in named if entry["namespace"] == namespace(plan)]
