from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from miniverl.losses.importance import truncated_is
from miniverl.losses.sampled_k1 import sampled_k1
from tests.oracle import sampled_k1 as oracle

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "verl-0.9.1.json").read_text())
V = 7


def toy(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits [V] of a student, a teacher and somebody who draws in the student's place."""
    logits = np.random.default_rng(seed).normal(size=(3, V))
    return torch.tensor(logits[0], requires_grad=True), torch.tensor(logits[1]), torch.tensor(logits[2])


def every_token(student: torch.Tensor, teacher: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probs of all V tokens, as if each had been sampled once."""
    return student.log_softmax(-1), teacher.log_softmax(-1)


def test_value_metric_and_gradient_equal_the_twin() -> None:
    random = np.random.default_rng(1)
    logps, teacher, weights, corrections = random.normal(size=(4, 9))
    weights = np.abs(weights)
    weights[3] = 0.0
    own = torch.tensor(logps, requires_grad=True)
    loss = sampled_k1(own, torch.tensor(teacher), torch.tensor(weights), is_weights_N=torch.tensor(corrections))
    loss.total.backward()
    total, estimate, gradient = oracle.sampled_k1(logps, teacher, weights, corrections)
    assert loss.total.item() == pytest.approx(total, abs=1e-12)
    assert loss.metrics["kl"].item() == pytest.approx(estimate, abs=1e-12)
    np.testing.assert_allclose(own.grad.numpy(), gradient, atol=1e-12)


def test_the_expected_gradient_is_the_exact_reverse_kl_gradient() -> None:
    student, teacher, _ = toy()
    own, theirs = every_token(student, teacher)
    loss = sampled_k1(own, theirs, student.detach().softmax(-1))  # each token as often as the student draws it
    loss.total.backward()
    exact = oracle.reverse_kl_gradient(student.detach().numpy(), teacher.numpy())
    np.testing.assert_allclose(student.grad.numpy(), exact, atol=1e-12)
    assert np.abs(exact).max() > 1e-2


def test_importance_weights_make_it_exact_for_tokens_another_policy_drew() -> None:
    student, teacher, drawer = toy(2)
    own, theirs = every_token(student, teacher)
    corrections = truncated_is(own, drawer.log_softmax(-1), cap=1e9)
    loss = sampled_k1(own, theirs, drawer.softmax(-1), is_weights_N=corrections)
    loss.total.backward()
    exact = oracle.reverse_kl_gradient(student.detach().numpy(), teacher.numpy())
    np.testing.assert_allclose(student.grad.numpy(), exact, atol=1e-12)


def test_teacher_equal_to_student_gives_zero_and_a_one_token_shift_does_not() -> None:
    own = torch.tensor(np.random.default_rng(3).normal(size=12), requires_grad=True)
    weights = torch.ones(12, dtype=torch.float64)
    (same,) = torch.autograd.grad(sampled_k1(own, own.detach().clone(), weights).total, own)
    (shifted,) = torch.autograd.grad(sampled_k1(own, own.detach().roll(1), weights).total, own)
    assert (same == 0).all()
    assert (shifted != 0).all()


def test_moving_the_teacher_moves_the_gradient() -> None:
    student, teacher, other = toy(4)
    gradients = []
    for judge in (teacher, other):
        own, theirs = every_token(student, judge)
        gradients.append(torch.autograd.grad(sampled_k1(own, theirs, student.detach().softmax(-1)).total, student)[0])
    assert (gradients[0] - gradients[1]).abs().max() > 1e-2


def test_a_token_the_teacher_likes_better_is_raised() -> None:
    own = torch.tensor([-2.0, -2.0], requires_grad=True)
    sampled_k1(own, torch.tensor([-1.0, -3.0]), torch.ones(2)).total.backward()
    assert own.grad.tolist() == [-1.0, 1.0]


def test_no_gradient_reaches_teacher_or_correction() -> None:
    own, theirs, corrections = (torch.full((4,), x, requires_grad=True) for x in (-1.0, -2.0, 0.5))
    sampled_k1(own, theirs, torch.ones(4), is_weights_N=corrections).total.backward()
    assert theirs.grad is None and corrections.grad is None


def test_the_metric_is_verls_k1() -> None:
    inputs = GOLDEN["inputs"]
    lengths = np.array(inputs["lengths"])
    logps, reference = np.array(inputs["logps"]), np.array(inputs["ref_logps"])
    mask = np.arange(logps.shape[1])[None, :] < lengths[:, None]
    estimate = sampled_k1(*(torch.tensor(column[mask]) for column in (logps, reference, mask.astype(float)))).metrics
    assert estimate["kl"].item() == pytest.approx(np.array(GOLDEN["kl"]["kl"]["value"])[mask].sum(), abs=1e-9)
