"""This file holds Scores: what the trainer's own model says about the response tokens of a parcel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from miniverl.contract.arrays import frozen
from miniverl.errors import ContractError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scores:
    """Log-probs at N response positions, over the full vocabulary.

    The kept rows of the parcel one after another, without padding.
    """

    packed: np.ndarray
    """float32 [N]; of the tokens, computed in micro-batches as in training."""
    alone: np.ndarray
    """float32 [N]; the same, each row by itself: the two differ by the trainer's own rounding."""
    likeliest: np.ndarray
    """int32 [N]; the ids that the trainer finds most probable, computed in micro-batches."""

    def __post_init__(self) -> None:
        for name in ("packed", "alone", "likeliest"):
            kind = np.int32 if name == "likeliest" else np.float32
            object.__setattr__(self, name, frozen(getattr(self, name), kind))
        shapes = [self.packed.shape, self.alone.shape, self.likeliest.shape]
        if len(set(shapes)) != 1 or self.packed.ndim != 1:
            raise ContractError("Scores", value=shapes, problem="not one number per position", fix="a bug of ours")
