from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from miniverl.losses.importance import truncated_is

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "verl-0.9.1.json").read_text())


def test_weights_equal_verls_truncated_ones() -> None:
    inputs = GOLDEN["inputs"]
    own, behaviour = (torch.tensor(inputs[name], dtype=torch.float64) for name in ("old_logps", "rollout_logps"))
    capped = truncated_is(own, behaviour, cap=2.0)
    lengths = np.array(inputs["lengths"])
    mask = np.arange(own.shape[1])[None, :] < lengths[:, None]
    np.testing.assert_allclose(capped.numpy()[mask], np.array(inputs["tis_weights_cap_2"])[mask], atol=1e-9)


def test_equal_log_probs_weigh_exactly_one() -> None:
    logps = torch.tensor([-0.1, -7.3, -0.0])
    assert truncated_is(logps, logps.clone(), cap=2.0).tolist() == [1.0, 1.0, 1.0]


def test_only_large_ratios_are_cut() -> None:
    weights = truncated_is(torch.tensor([0.0, 0.0]), torch.tensor([-3.0, 3.0]), cap=2.0)
    np.testing.assert_allclose(weights.numpy(), [2.0, np.exp(-3.0)], rtol=1e-6)


def test_weights_carry_no_gradient() -> None:
    assert not truncated_is(torch.zeros(2, requires_grad=True), torch.zeros(2), cap=2.0).requires_grad
