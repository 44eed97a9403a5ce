"""This file holds TeacherTargets: what the teacher says about every response token of a parcel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from miniverl.contract.arrays import frozen
from miniverl.errors import ContractError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TeacherTargets:
    """Log-probs at N response positions: the kept rows of the parcel one after another, without padding.

    Exactly one representation is filled: ``exact`` (the whole vocabulary, for small ones), ``top_*`` with ``tail``
    (the k likeliest ids and everything else), or ``sampled`` (the token that was drawn).
    """

    group_ids: tuple[str, ...]
    """The kept groups these targets were computed for, in order."""
    temperature: float
    exact: np.ndarray | None = None
    """float32 [N, V]."""
    top_ids: np.ndarray | None = None
    """int32 [N, k]; the teacher's likeliest ids."""
    top_logps: np.ndarray | None = None
    """float32 [N, k]; their log-probs, full vocabulary."""
    tail: np.ndarray | None = None
    """float32 [N]; log of the mass outside ``top_ids``."""
    sampled: np.ndarray | None = None
    """float32 [N]; log-prob of the sampled token."""

    def __post_init__(self) -> None:
        for name in ("exact", "top_ids", "top_logps", "tail", "sampled"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen(value, np.int32 if name == "top_ids" else np.float32))
        filled = [self.exact is not None, self.top_ids is not None, self.sampled is not None]
        if sum(filled) != 1 or len({column is None for column in (self.top_ids, self.top_logps, self.tail)}) != 1:
            raise ContractError("TeacherTargets", value=filled, problem="not exactly one representation", fix="a bug")

    @property
    def positions(self) -> int:
        """N."""
        for array in (self.exact, self.top_logps, self.sampled):
            if array is not None:
                return len(array)
        raise AssertionError("born with one representation")
