"""A frozen model stands where a policy is expected and is changed by none."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.policy import Policy
from miniverl.errors import IdentityError
from miniverl.models.frozen import FrozenModel
from miniverl.models.load import load_base
from tests.contract.drawn import snapshot

HEAD = "model.norm.weight"


@pytest.fixture
def frozen(model_plan) -> FrozenModel:
    return FrozenModel(load_base(model_plan("tiny-teacher"), device=torch.device("cpu")), vocabulary=20)


def policy(tensors: dict[str, np.ndarray], *, named: dict[str, np.ndarray] | None = None) -> Policy:
    named = tensors if named is None else named
    return Policy(snapshot=snapshot(tensor_digest=tensors_digest(named)), tensors=tensors)


def bytes_of(frozen: FrozenModel) -> str:
    return tensors_digest({name: value.numpy() for name, value in frozen.module.state_dict().items()})


def test_a_policy_without_tensors_is_taken_and_the_weights_stay(frozen):
    before = bytes_of(frozen)
    frozen.load(policy({}))
    assert bytes_of(frozen) == before


def test_even_a_policy_that_brings_weights_changes_none(frozen):
    before = bytes_of(frozen)
    frozen.load(policy({HEAD: np.zeros_like(frozen.module.state_dict()[HEAD].numpy())}))
    assert bytes_of(frozen) == before


def test_a_policy_that_is_not_what_it_names_is_refused_all_the_same(frozen):
    with pytest.raises(IdentityError, match=r"policy\.tensors"):
        frozen.load(policy({HEAD: np.zeros(1, dtype=np.float32)}, named={}))


def test_nothing_in_it_asks_for_a_gradient(frozen):
    assert frozen.vocabulary == 20
    assert not any(parameter.requires_grad for parameter in frozen.module.parameters())


def test_it_has_no_adapter_to_judge(frozen):
    assert frozen.adapter_effect() is None
