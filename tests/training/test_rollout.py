from dataclasses import replace

import numpy as np
import pytest
from peft.tuners.lora import LoraLayer

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.policy import Policy
from miniverl.contract.request import requests_for
from miniverl.data.order import PromptOrder
from miniverl.errors import ConformanceError, IdentityError
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


def trained(policy: Policy, *, version: int, b: float = 0.01) -> Policy:
    """The policy as a step would leave it: every entry of B is ``b``."""
    tensors = {name: array + np.float32(b) * (".lora_B." in name) for name, array in policy.tensors.items()}
    return Policy(
        snapshot=replace(policy.snapshot, version=version, tensor_digest=tensors_digest(tensors)), tensors=tensors
    )


@pytest.fixture(params=["hf_cached", "hf_reference"])
def switched_off(request, plan_for):
    """A rollout whose engine loads the adapter and then does not use it, and the untrained policy."""
    plan = plan_for("off", f"rollout.backend={request.param}")
    rollout = EngineRollout(plan.rollout)
    for layer in rollout._engine._model.module.modules():
        if isinstance(layer, LoraLayer):
            layer.scaling = dict.fromkeys(layer.scaling, 0.0)
    return rollout, PolicyTrainer(plan.trainer, run_dir=plan.run_dir).policy()


def test_an_engine_that_does_not_use_the_adapter_is_caught_at_the_first_version_it_matters(switched_off):
    rollout, policy = switched_off
    rollout.synchronize(policy)
    with pytest.raises(ConformanceError, match=r"policy version 1 = 0\.0: changes no log-prob"):
        rollout.synchronize(trained(policy, version=1))


def test_an_adapter_too_small_to_be_seen_is_no_idle_adapter(switched_off):
    rollout, policy = switched_off
    rollout.synchronize(trained(policy, version=1, b=1e-9))


def test_an_engine_that_uses_the_adapter_passes_at_every_version(asked):
    _, rollout, policy, _ = asked
    for version in (1, 2, 3):
        rollout.synchronize(trained(policy, version=version, b=0.01 * version))
