"""This file holds Loss: what every loss function returns."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Sums over positions, never means: sums of any split of a batch add up to those of the whole batch."""

    total: Tensor
    """Scalar; sum of weight x loss over positions. The step's loss is the sum of totals over the sum of row shares."""
    metrics: dict[str, Tensor] = field(default_factory=dict)
    """Detached scalars; each the sum of weight x value over positions."""
