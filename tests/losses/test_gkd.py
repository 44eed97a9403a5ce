from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from miniverl.losses.gkd import DIVERGENCES, cells_from_top, gkd, gkd_topk, with_tail
from tests.oracle import gkd as oracle

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "verl-0.9.1.json").read_text())
N, V, K, BETA = 6, 11, 4, 0.3
EVERY_DIVERGENCE = pytest.mark.parametrize("divergence", ["forward_kl", "reverse_kl", "jsd"])


def draw(seed: int = 0, scale: float = 2.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Student logits, teacher logits [N, V] and weights [N] with one masked position."""
    random = np.random.default_rng(seed)
    weights = random.uniform(0.2, 2.0, N)
    weights[2] = 0.0
    logits = scale * random.normal(size=(2, N, V))
    return torch.tensor(logits[0], requires_grad=True), torch.tensor(logits[1]), torch.tensor(weights)


def top_of(teacher_logps: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The teacher's ids [N, k] and its cells [N, k + 1], the tail summed by hand."""
    top_logps, top_ids = teacher_logps.topk(k, dim=-1)
    rest = torch.ones_like(teacher_logps).scatter(-1, top_ids, 0.0) * teacher_logps.exp()
    return top_ids, cells_from_top(top_logps, rest.sum(-1).log())


def topk_loss(student: torch.Tensor, teacher: torch.Tensor, weights: torch.Tensor, k: int, divergence: str):
    top_ids, cells = top_of(teacher.log_softmax(-1), k)
    return gkd_topk(student.log_softmax(-1), top_ids, cells, weights, divergence=divergence, jsd_beta=BETA)


def per_position(student_logps: torch.Tensor, teacher_logps: torch.Tensor, divergence: str) -> torch.Tensor:
    return DIVERGENCES[divergence](student_logps, teacher_logps, BETA)


@EVERY_DIVERGENCE
def test_exact_value_and_gradient_equal_the_twin(divergence: str) -> None:
    student, teacher, weights = draw()
    loss = gkd(student.log_softmax(-1), teacher.log_softmax(-1), weights, divergence=divergence, jsd_beta=BETA)
    loss.total.backward()
    total, gradient = oracle.gkd(
        student.detach().numpy(), teacher.numpy(), weights.numpy(), divergence=divergence, beta=BETA
    )
    assert loss.total.item() == pytest.approx(total, abs=1e-12)
    np.testing.assert_allclose(student.grad.numpy(), gradient, atol=1e-12)


@EVERY_DIVERGENCE
@pytest.mark.parametrize("k", [1, K, V - 1])
def test_topk_value_and_gradient_equal_the_twin(divergence: str, k: int) -> None:
    student, teacher, weights = draw(1)
    loss = topk_loss(student, teacher, weights, k, divergence)
    loss.total.backward()
    top_ids, _ = top_of(teacher.log_softmax(-1), k)
    total, gradient = oracle.gkd(
        student.detach().numpy(), teacher.numpy(), weights.numpy(), divergence=divergence, beta=BETA,
        top_ids=top_ids.numpy(),
    )  # fmt: skip
    assert loss.total.item() == pytest.approx(total, abs=1e-12)
    np.testing.assert_allclose(student.grad.numpy(), gradient, atol=1e-12)


@EVERY_DIVERGENCE
def test_teacher_equal_to_student_gives_zero_at_every_position(divergence: str) -> None:
    _, teacher, _ = draw(2)
    same = teacher.log_softmax(-1)
    top_ids, cells = top_of(same, K)
    assert per_position(same, same, divergence).abs().max() < 1e-12
    assert per_position(with_tail(same, top_ids), cells, divergence).abs().max() < 1e-12


@EVERY_DIVERGENCE
def test_teacher_equal_to_student_moves_nothing(divergence: str) -> None:
    student, _, weights = draw(2)
    for loss in (
        gkd(
            student.log_softmax(-1), student.detach().log_softmax(-1), weights, divergence=divergence, jsd_beta=BETA
        ),
        topk_loss(student, student.detach(), weights, K, divergence),
    ):  # fmt: skip
        (gradient,) = torch.autograd.grad(loss.total, student)
        assert gradient.abs().max() < 1e-12


@EVERY_DIVERGENCE
def test_a_one_token_shift_of_the_teacher_is_seen_at_every_position(divergence: str) -> None:
    _, teacher, _ = draw(3)
    logps = teacher.log_softmax(-1)
    assert per_position(logps, logps.roll(1, dims=0), divergence).min() > 1e-2


@EVERY_DIVERGENCE
def test_moving_the_teacher_moves_the_gradient(divergence: str) -> None:
    student, teacher, weights = draw(4)
    gradients = [
        torch.autograd.grad(topk_loss(student, moved, weights, K, divergence).total, student)[0]
        for moved in (teacher, teacher.roll(1, dims=-1))
    ]
    assert (gradients[0] - gradients[1]).abs().max() > 1e-2


def test_the_directions_are_the_way_round_their_names_say() -> None:
    """Teacher (1/2, 1/2), student (9/10, 1/10): by hand KL(t||s) = 0.5108, KL(s||t) = 0.3681."""
    teacher, student = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[0.9, 0.1]]).log()
    forward = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1)
    reverse = 0.9 * math.log(0.9 / 0.5) + 0.1 * math.log(0.1 / 0.5)
    assert per_position(student, teacher, "forward_kl").item() == pytest.approx(forward, abs=1e-6)
    assert per_position(student, teacher, "reverse_kl").item() == pytest.approx(reverse, abs=1e-6)


def test_jsd_leans_to_forward_kl_for_small_beta_and_to_reverse_kl_for_large() -> None:
    student, teacher, weights = draw(5, scale=0.5)
    student_logps, teacher_logps = student.detach().log_softmax(-1), teacher.log_softmax(-1)
    for beta, like in ((1e-6, "forward_kl"), (1 - 1e-6, "reverse_kl")):
        jsd = gkd(student_logps, teacher_logps, weights, divergence="jsd", jsd_beta=beta).total
        limit = gkd(student_logps, teacher_logps, weights, divergence=like, jsd_beta=beta).total
        assert jsd.item() == pytest.approx(limit.item() * min(beta, 1 - beta), rel=1e-4)


@EVERY_DIVERGENCE
def test_topk_never_exceeds_the_exact_divergence_and_grows_with_k(divergence: str) -> None:
    student, teacher, _ = draw(6)
    student_logps, teacher_logps = student.detach().log_softmax(-1), teacher.log_softmax(-1)
    exact = per_position(student_logps, teacher_logps, divergence)
    before = torch.zeros(N, dtype=torch.float64)
    for k in range(1, V):
        top_ids, cells = top_of(teacher_logps, k)
        now = per_position(with_tail(student_logps, top_ids), cells, divergence)
        assert (now <= exact + 1e-12).all() and (now >= before - 1e-12).all()
        before = now


@EVERY_DIVERGENCE
def test_topk_of_the_whole_vocabulary_is_exact_with_finite_gradients(divergence: str) -> None:
    student, teacher, weights = draw(7)
    top_ids = teacher.argsort(-1, descending=True)
    cells = cells_from_top(teacher.log_softmax(-1).gather(-1, top_ids), torch.full((N,), -math.inf))
    whole = gkd_topk(student.log_softmax(-1), top_ids, cells, weights, divergence=divergence, jsd_beta=BETA).total
    exact = gkd(student.log_softmax(-1), teacher.log_softmax(-1), weights, divergence=divergence, jsd_beta=BETA).total
    assert whole.item() == pytest.approx(exact.item(), abs=1e-12)
    gradients = [torch.autograd.grad(total, student)[0] for total in (whole, exact)]
    torch.testing.assert_close(*gradients, atol=1e-12, rtol=0)


@EVERY_DIVERGENCE
def test_cells_without_mass_count_nothing_and_leave_gradients_finite(divergence: str) -> None:
    student, teacher, weights = draw(8)
    dead = torch.zeros(N, V, dtype=torch.bool)
    dead[:, -3:] = True
    masked = [logits.masked_fill(dead, -math.inf).log_softmax(-1) for logits in (student, teacher)]
    total = gkd(*masked, weights, divergence=divergence, jsd_beta=BETA).total
    (gradient,) = torch.autograd.grad(total, student)
    alive = gkd(
        student[:, :-3].log_softmax(-1), teacher[:, :-3].log_softmax(-1), weights, divergence=divergence, jsd_beta=BETA
    ).total
    assert total.item() == pytest.approx(alive.item(), abs=1e-12)
    torch.testing.assert_close(gradient, torch.autograd.grad(alive, student)[0], atol=1e-12, rtol=0)


def test_the_tail_stays_exact_where_one_minus_the_top_would_cancel() -> None:
    """Mass 1e-20 lies outside the top: 1 - sum(top) is 0 in any float, the tail is its log and has a gradient."""
    logits = torch.tensor([[0.0, -50.0, -47.0, -46.5]], requires_grad=True)
    tail = with_tail(logits.log_softmax(-1), torch.tensor([[0]]))[0, 1]
    assert tail.item() == pytest.approx(math.log(math.exp(-50.0) + math.exp(-47.0) + math.exp(-46.5)), abs=1e-5)
    (gradient,) = torch.autograd.grad(tail, logits)
    assert gradient[0, 1:].sum().item() == pytest.approx(1.0, abs=1e-5)


def test_an_empty_tail_behind_top_ids_has_a_finite_gradient() -> None:
    logits = torch.tensor([[0.3, -0.2, 0.0, 0.0]], requires_grad=True)
    logps = logits.masked_fill(torch.tensor([[False, False, True, True]]), -math.inf).log_softmax(-1)
    cells = with_tail(logps, torch.tensor([[1, 0]]))
    assert cells[0, 2] == -math.inf
    (gradient,) = torch.autograd.grad(cells[0, :2].sum(), logits)
    assert gradient.isfinite().all()


def test_the_tail_penalises_mass_that_leaves_the_top() -> None:
    """Without it reverse KL over the top falls when the student moves its mass outside."""
    teacher = torch.tensor([[4.0, 3.0, 0.0, 0.0, 0.0]]).log_softmax(-1)
    inside = torch.tensor([[4.0, 3.0, 0.0, 0.0, 0.0]], dtype=torch.float32).log_softmax(-1)
    outside = torch.tensor([[0.0, 0.0, 4.0, 4.0, 4.0]]).log_softmax(-1)
    top_ids, cells = top_of(teacher, 2)
    close, far = (per_position(with_tail(s, top_ids), cells, "reverse_kl").item() for s in (inside, outside))
    head = per_position(with_tail(outside, top_ids)[:, :2], cells[:, :2], "reverse_kl").item()
    assert far > close + 1.0
    assert head < 0.0


def test_masses_are_weighted_sums_of_the_probability_of_the_top() -> None:
    student, teacher, weights = draw(9)
    metrics = topk_loss(student, teacher, weights, K, "reverse_kl").metrics
    top_ids, _ = top_of(teacher.log_softmax(-1), K)
    for name, logits in (("student_mass", student), ("teacher_mass", teacher)):
        mass = (logits.softmax(-1).gather(-1, top_ids).sum(-1) * weights).sum().item()
        assert metrics[name].item() == pytest.approx(mass, abs=1e-12)
        assert not metrics[name].requires_grad


def test_float32_stays_near_the_twin() -> None:
    student, teacher, weights = draw(10)
    single = student.detach().float().requires_grad_()
    loss = topk_loss(single, teacher.float(), weights.float(), K, "reverse_kl")
    loss.total.backward()
    top_ids, _ = top_of(teacher.log_softmax(-1), K)
    total, gradient = oracle.gkd(
        student.detach().numpy(), teacher.numpy(), weights.numpy(), divergence="reverse_kl", beta=BETA,
        top_ids=top_ids.numpy(),
    )  # fmt: skip
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(single.grad.numpy(), gradient, atol=1e-5)


def test_the_head_of_forward_kl_is_verls_unclamped_topk_loss() -> None:
    """verl drops the tail; without ours, value and gradient are the same."""
    golden = GOLDEN["forward_kl_topk_unclamped"]
    student = torch.tensor(golden["student_logits"], dtype=torch.float64, requires_grad=True)
    teacher_logps = torch.tensor(golden["teacher_logits"], dtype=torch.float64).log_softmax(-1)
    top_logps, top_ids = teacher_logps.topk(golden["k"], dim=-1)
    head = with_tail(student.log_softmax(-1), top_ids)[:, : golden["k"]]
    values = per_position(head, top_logps, "forward_kl")
    np.testing.assert_allclose(values.detach().numpy(), golden["per_token"], atol=1e-9)
    (gradient,) = torch.autograd.grad(values.sum(), student)
    np.testing.assert_allclose(gradient.numpy(), golden["grad_of_sum"], atol=1e-9)
