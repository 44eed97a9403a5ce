"""This file holds Mismatch: how far two models' log-probs of the same tokens are apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Over N tokens. Differences are in nats; what is not a number stays so, and is within no limit."""

    tokens: int
    """N."""
    max: float
    """Largest absolute difference of a log-prob."""
    mean: float
    """Mean absolute difference."""
    p99: float
    """99th percentile of the absolute differences, linearly interpolated."""
    k3: float
    """Estimate of KL(theirs || own) from tokens that they drew: mean of exp(d) - 1 - d with d = own - theirs, never
    negative; Schulman, "Approximating KL divergence", equation k3."""
    probability: float
    """Mean absolute difference of the probabilities."""


def mismatch(own: np.ndarray, theirs: np.ndarray) -> Mismatch:
    """``own``, ``theirs``: log-probs [N] of the same tokens, N >= 1; compared in float64."""
    own, theirs = own.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(all="ignore"):  # infinities are what this must be able to report
        difference = own - theirs
        distance = np.abs(difference)
        return Mismatch(
            tokens=len(own),
            max=float(distance.max()),
            mean=float(distance.mean()),
            p99=float(np.quantile(distance, 0.99)),
            k3=float((np.expm1(difference) - difference).mean()),
            probability=float(np.abs(np.exp(own) - np.exp(theirs)).mean()),
        )
