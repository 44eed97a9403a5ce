"""This file holds the reductions: how much each token counts, given the lengths of the rows.

A loss is sum(weight x loss) / sum(share). Both sums add up over rows, so that they may be accumulated in any
grouping and divided once: the split into micro-batches cannot change a gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWeights:
    """What each of B rows contributes. A row of length 0 is masked: it contributes (0, 0)."""

    token: Tensor
    """float64 [B]; weight of every response token of the row."""
    share: Tensor
    """float64 [B]; the row's part of the denominator."""


def weights(mode: str, lengths: np.ndarray | Tensor, *, horizon: int) -> RowWeights:
    """Weights of rows with ``lengths`` response tokens [B], >= 0. ``mode`` is a key of ``REDUCTIONS`` (verl's names).

    ``horizon`` >= 1 is the response limit in tokens, the constant of seq-mean-token-sum-norm; others ignore it.
    """
    counts = lengths.double() if isinstance(lengths, Tensor) else torch.tensor(lengths, dtype=torch.float64)
    token, share = REDUCTIONS[mode](counts, horizon)
    counted = counts > 0
    return RowWeights(token=torch.where(counted, token, 0.0), share=torch.where(counted, share, 0.0))


def _token_mean(counts: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    return torch.ones_like(counts), counts


def _seq_mean_token_sum(counts: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    return torch.ones_like(counts), torch.ones_like(counts)


def _seq_mean_token_mean(counts: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    return 1.0 / counts, torch.ones_like(counts)


def _constant(counts: Tensor, horizon: int) -> tuple[Tensor, Tensor]:
    return torch.full_like(counts, 1.0 / horizon), torch.ones_like(counts)


REDUCTIONS: dict[str, Callable[[Tensor, int], tuple[Tensor, Tensor]]] = {
    "token-mean": _token_mean,
    "seq-mean-token-sum": _seq_mean_token_sum,
    "seq-mean-token-mean": _seq_mean_token_mean,
    "seq-mean-token-sum-norm": _constant,
}
"""By verl's loss_agg_mode: counts [B] and horizon to (token weight [B], share of the denominator [B])."""
