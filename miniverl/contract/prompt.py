"""This file holds Prompt: one row of the data after the chat template."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from miniverl.contract.arrays import frozen
from miniverl.contract.canonical import little_endian
from miniverl.errors import ContractError


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prompt:
    """What the student reads before it answers."""

    row: int
    """Row number in the concatenated data files, from 0; what complaints name."""
    ids: np.ndarray
    """int32 [P], P >= 1; token ids after the chat template, read-only."""
    data_source: str
    """verl's column of that name; routes rewards and teachers."""
    ground_truth: str | None
    """``reward_model.ground_truth``; None when the row has none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", frozen(self.ids, np.int32))
        if self.ids.ndim != 1 or not len(self.ids):
            raise ContractError(
                "Prompt.ids", value=self.ids.shape, problem="a prompt is one non-empty row", fix="check the template"
            )

    @property
    def digest(self) -> str:
        """SHA-256 of the ids."""
        return hashlib.sha256(little_endian(self.ids)).hexdigest()


def group_id(cursor: int, prompt: Prompt) -> str:
    """Identity of the group of samples drawn for the prompt at ``cursor`` (which counts over epochs)."""
    return f"{cursor:012d}-{prompt.digest[:12]}"
