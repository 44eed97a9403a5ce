from dataclasses import replace

import pytest

from miniverl.contract.request import requests_for
from miniverl.data.order import PromptOrder
from miniverl.errors import IdentityError
from miniverl.training.assemble import read_planned
from miniverl.training.rollout import EngineRollout
from miniverl.training.trainer import PolicyTrainer


@pytest.fixture
def asked(plan_for):
    """A plan, a synchronized rollout, its policy and the requests of twelve prompts."""
    plan = plan_for("rollout", "rollout.max_padded_tokens=192")  # eight slots for 24 rows
    rollout = EngineRollout(plan.rollout)
    policy = PolicyTrainer(plan.trainer, run_dir=plan.run_dir).policy()
    rollout.synchronize(policy)
    prompts = PromptOrder(read_planned(plan.train_data), shuffle=True, seed=1).take(0, 12)
    return plan, rollout, policy, prompts


def requests(plan, policy, prompts):
    return requests_for(prompts, policy.snapshot, samples=2, sampling=plan.sampling, run_seed=plan.seed)


def test_groups_come_in_cursor_order_whatever_finishes_first(asked):
    plan, rollout, policy, prompts = asked
    parcels = list(rollout.generate(requests(plan, policy, prompts)))
    assert [group.cursor for groups in parcels for group in groups] == list(range(12))
    assert len(parcels) > 2


def test_a_part_of_the_prompts_gives_the_same_groups_as_the_whole(asked):
    plan, rollout, policy, prompts = asked
    whole = {g.id: g.digest for groups in rollout.generate(requests(plan, policy, prompts)) for g in groups}
    part = {g.id: g.digest for groups in rollout.generate(requests(plan, policy, prompts[7:])) for g in groups}
    assert part == {name: whole[name] for name in part}
    assert len(part) == 5


def test_requests_under_another_policy_are_refused(asked):
    plan, rollout, policy, prompts = asked
    stale = replace(policy, snapshot=replace(policy.snapshot, version=7))
    with pytest.raises(IdentityError):
        next(rollout.generate(requests(plan, stale, prompts)))
