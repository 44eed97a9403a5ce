"""This file holds the trainer's shell: it offers what the page calls, and building it costs nothing."""

from actors.trainer import TrainerActor
from miniverl.training.roles import Trainer
from tests.actors.roles import differences


def test_the_shell_answers_every_call_of_the_role():
    assert differences(Trainer, TrainerActor) == []


def test_nothing_is_built_before_the_start(plan):
    actor = TrainerActor(plan.trainer, plan.run_dir)
    assert not hasattr(actor, "_trainer") and actor._vitals.role == "trainer"
