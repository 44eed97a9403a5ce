"""This file holds the run in one process: the page on objects instead of actors, with the same bytes in the end."""

from __future__ import annotations

from collections.abc import Callable

import torch

from miniverl.contract.event import Event
from miniverl.plan.plan import Plan
from miniverl.record.journal import Journal
from miniverl.record.rundir import RunDirectory
from miniverl.rewards.none import NoRewards
from miniverl.training.assemble import assemble
from miniverl.training.loop import train
from miniverl.training.roles import Roles
from miniverl.training.rollout import EngineRollout
from miniverl.training.teacher import ModelTeacher
from miniverl.training.trainer import PolicyTrainer


def local_roles(plan: Plan) -> Roles:
    """The roles as plain objects. The journal takes the run directory's lock."""
    torch.set_num_threads(plan.trainer.share.threads)  # one process has one number; actors have theirs each
    RunDirectory.prepare(plan.run_dir)
    return Roles(
        journal=Journal.open_or_create(
            plan.run_dir, run_id=plan.run_id, experiment=plan.experiment, experiment_facts=plan.experiment_facts
        ),
        trainer=PolicyTrainer(plan.trainer, run_dir=plan.run_dir),
        rollout=EngineRollout(plan.rollout),
        teacher=ModelTeacher(plan.teacher),
        rewards=NoRewards(),
    )


def run_locally(
    plan: Plan, *, stop: Callable[[], bool] = lambda: False, say: Callable[[Event], None] = lambda event: None
) -> Roles:
    """Trains to the end; returns the roles for whoever wants to look. Raises Stopped when asked to stop."""
    roles = local_roles(plan)
    train(assemble(plan, roles, stop=stop, say=say))
    return roles
