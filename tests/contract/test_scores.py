"""The trainer says one thing of each kind about every position, and what it said cannot be changed."""

from __future__ import annotations

import numpy as np
import pytest

from miniverl.contract.scores import Scores
from miniverl.errors import ContractError


def test_what_was_scored_cannot_be_changed():
    scores = Scores(packed=[-1.0, -2.0], alone=[-1.0, -2.0], likeliest=[3, 4])
    assert (scores.packed.dtype, scores.likeliest.dtype) == (np.float32, np.int32)
    for column in (scores.packed, scores.alone, scores.likeliest):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


@pytest.mark.parametrize("short", ["packed", "alone", "likeliest"])
def test_columns_of_different_lengths_are_no_scores(short):
    columns = {"packed": [-1.0, -2.0], "alone": [-1.0, -2.0], "likeliest": [3, 4]}
    with pytest.raises(ContractError, match="one number per position"):
        Scores(**{**columns, short: columns[short][:1]})
