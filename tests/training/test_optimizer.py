import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

from miniverl.training.optimizer import Optimizer


@pytest.fixture
def plan(trainer_plan):
    return trainer_plan(lr=0.1).optim


def parameters():
    return {"a": nn.Parameter(torch.tensor([1.0, -2.0])), "b": nn.Parameter(torch.tensor([[3.0]]))}


def backward(named, scale=1.0):
    (scale * sum((p**2).sum() for p in named.values())).backward()


def test_the_gradient_is_divided_then_clipped_then_applied(plan):
    named = parameters()
    optimizer = Optimizer(dataclasses.replace(plan, clip_grad=0.5), named)
    backward(named, scale=4.0)
    norm, done = optimizer.apply(1, denominator=4.0)
    assert done
    assert norm == pytest.approx(2 * np.sqrt(1 + 4 + 9))
    first = np.concatenate([optimizer.state()[f"exp_avg.{name}"].ravel() for name in ("a", "b")]) / 0.1
    assert np.linalg.norm(first) == pytest.approx(0.5, rel=1e-5)


def test_one_step_of_adamw_is_the_papers(plan):
    named = parameters()
    optimizer = Optimizer(dataclasses.replace(plan, weight_decay=0.5, clip_grad=float("inf")), named)
    backward(named)
    optimizer.apply(1, denominator=1.0)
    # The first step moves each weight by lr against its gradient's sign, after decaying it by lr * weight_decay.
    assert torch.allclose(named["a"].data, torch.tensor([1.0 * 0.95 - 0.1, -2.0 * 0.95 + 0.1]), atol=1e-6)


def test_a_gradient_that_is_not_finite_changes_nothing(plan):
    named = parameters()
    optimizer = Optimizer(plan, named)
    backward(named, scale=float("inf"))
    _, done = optimizer.apply(1, denominator=1.0)
    assert not done
    assert optimizer.state() == {}
    assert named["a"].tolist() == [1.0, -2.0]
    assert named["a"].grad is None


def test_a_restored_optimizer_takes_the_same_next_step(plan):
    named, twin = parameters(), parameters()
    optimizer, restored = Optimizer(plan, named), Optimizer(plan, twin)
    backward(named)
    optimizer.apply(1, denominator=1.0)
    for name, parameter in twin.items():
        parameter.data.copy_(named[name].data)
    restored.restore(optimizer.state())
    for each, mine in ((optimizer, named), (restored, twin)):
        backward(mine)
        each.apply(2, denominator=1.0)
    assert all(torch.equal(named[name], twin[name]) for name in named)
    assert all(np.array_equal(optimizer.state()[key], value) for key, value in restored.state().items())
