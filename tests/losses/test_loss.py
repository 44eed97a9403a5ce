from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from miniverl.losses.gkd import gkd
from miniverl.losses.loss import Loss
from miniverl.losses.reduction import REDUCTIONS, weights
from miniverl.losses.sampled_k1 import sampled_k1

V, HORIZON = 5, 8
LENGTHS = np.array([8, 1, 3, 6, 2, 5])
SPLITS = [[6], [3, 3], [1, 2, 3], [1] * 6, [5, 1]]


def direct(student: torch.Tensor, teacher: torch.Tensor, weights_N: torch.Tensor) -> Loss:
    return gkd(student.log_softmax(-1), teacher.log_softmax(-1), weights_N, divergence="reverse_kl", jsd_beta=0.5)


def sampled(student: torch.Tensor, teacher: torch.Tensor, weights_N: torch.Tensor) -> Loss:
    return sampled_k1(student.log_softmax(-1)[:, 0], teacher.log_softmax(-1)[:, 0], weights_N)


def gradient(loss, mode: str, split: list[int]) -> torch.Tensor:
    """Gradient by the student's one parameter row [V], accumulated over micro-batches of rows."""
    random = np.random.default_rng(0)
    parameter = torch.tensor(random.normal(size=V), requires_grad=True)
    inputs, teachers = (torch.tensor(random.normal(size=(LENGTHS.sum(), V))) for _ in range(2))
    starts, denominator, row = np.concatenate([[0], LENGTHS.cumsum()]), 0.0, 0
    for size in split:
        rows = weights(mode, LENGTHS[row : row + size], horizon=HORIZON)
        where = slice(starts[row], starts[row + size])
        weights_N = rows.token.repeat_interleave(torch.tensor(LENGTHS[row : row + size]))
        loss(parameter * inputs[where], teachers[where], weights_N).total.backward()
        denominator += float(rows.share.sum())
        row += size
    return parameter.grad / denominator


@pytest.mark.parametrize("loss", [direct, sampled])
@pytest.mark.parametrize("mode", sorted(REDUCTIONS))
def test_the_gradient_does_not_depend_on_the_split_into_micro_batches(loss, mode: str) -> None:
    whole = gradient(loss, mode, SPLITS[0])
    assert whole.abs().max() > 1e-3
    for split in SPLITS[1:]:
        torch.testing.assert_close(gradient(loss, mode, split), whole, rtol=1e-12, atol=1e-14)


def test_the_reductions_weigh_rows_differently() -> None:
    gradients = [gradient(direct, mode, SPLITS[0]) for mode in sorted(REDUCTIONS)]
    for i, one in enumerate(gradients):
        assert all((one - other).abs().max() > 1e-4 for other in gradients[i + 1 :])


def test_a_loss_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Loss(total=torch.zeros(())).total = torch.ones(())  # type: ignore[misc]
