from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from miniverl.contract.arrays import frozen
from miniverl.losses.reduction import REDUCTIONS, weights
from tests.oracle import reduction as oracle

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "verl-0.9.1.json").read_text())
HORIZON = 7
EVERY_MODE = pytest.mark.parametrize(
    "mode", ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]
)


def reduced(mode: str, rows: list[list[float]]) -> float:
    kind = weights(mode, np.array([len(row) for row in rows]), horizon=HORIZON)
    total = sum(float(w) * sum(row) for w, row in zip(kind.token, rows, strict=True))
    return total / float(kind.share.sum())


def drawn_rows(seed: int) -> list[list[float]]:
    random = np.random.default_rng(seed)
    return [random.normal(size=length).tolist() for length in random.integers(0, HORIZON + 1, size=9)]


def test_every_reduction_is_named_as_in_verl() -> None:
    assert set(REDUCTIONS) == set(GOLDEN["reductions"]) - {"token-sum"}


@EVERY_MODE
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_weights_and_shares_equal_the_twin(mode: str, seed: int) -> None:
    rows = drawn_rows(seed)
    assert reduced(mode, rows) == pytest.approx(oracle.reduce(mode, rows, horizon=HORIZON), abs=1e-12)


@EVERY_MODE
def test_reductions_equal_verls(mode: str) -> None:
    lengths = np.array(GOLDEN["inputs"]["lengths"])
    rows = [row[:length] for row, length in zip(GOLDEN["inputs"]["loss_matrix"], lengths, strict=True)]
    kind = weights(mode, lengths, horizon=HORIZON)
    token = kind.token.numpy()
    if mode == "seq-mean-token-mean":
        token = token * lengths / (lengths + 1e-8)  # verl adds 1e-8 to the count of each row
    total = sum(w * sum(row) for w, row in zip(token, rows, strict=True))
    assert total / float(kind.share.sum()) == pytest.approx(GOLDEN["reductions"][mode], abs=1e-9)


@EVERY_MODE
def test_a_masked_row_counts_nowhere(mode: str) -> None:
    kind = weights(mode, np.array([3, 0, 5]), horizon=HORIZON)
    assert (kind.token[1].item(), kind.share[1].item()) == (0.0, 0.0)
    assert kind.token.isfinite().all() and (kind.share[[0, 2]] > 0).all()


@EVERY_MODE
def test_lengths_may_be_read_only_numpy_or_torch(mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = weights(mode, frozen([3, 0, 5], np.int32), horizon=HORIZON)
    theirs = weights(mode, torch.tensor([3, 0, 5]), horizon=HORIZON)
    assert torch.equal(ours.token, theirs.token) and torch.equal(ours.share, theirs.share)
    assert ours.token.dtype == ours.share.dtype == torch.float64


@EVERY_MODE
def test_a_row_weighs_the_same_whoever_is_beside_it(mode: str) -> None:
    lengths = np.array([4, 1, 7, 2])
    whole = weights(mode, lengths, horizon=HORIZON)
    for row, length in enumerate(lengths):
        alone = weights(mode, np.array([length]), horizon=HORIZON)
        assert alone.token[0] == whole.token[row] and alone.share[0] == whole.share[row]
