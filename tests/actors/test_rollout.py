"""This file holds the rollout's shell: it offers what the page calls, and building it costs nothing."""

from actors.rollout import RolloutActor
from miniverl.training.roles import Rollout
from tests.actors.roles import differences


def test_the_shell_answers_every_call_of_the_role():
    assert differences(Rollout, RolloutActor, renamed={"synchronize": ["self", "snapshot", "tensors"]}) == []


def test_nothing_is_built_before_the_start(plan):
    actor = RolloutActor(plan.rollout)
    assert not hasattr(actor, "_rollout") and actor._vitals.role == "rollout"
