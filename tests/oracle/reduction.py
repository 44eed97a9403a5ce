"""This file holds the slow twin of the reductions: each mean as its name reads, over rows without padding."""

from __future__ import annotations

import math
from collections.abc import Sequence


def reduce(mode: str, rows: Sequence[Sequence[float]], *, horizon: int) -> float:
    """``rows``: losses of the response tokens of each row; an empty row is masked and counts nowhere."""
    rows = [row for row in rows if row]
    sums = [math.fsum(row) for row in rows]
    if mode == "token-mean":
        return math.fsum(sums) / sum(len(row) for row in rows)
    if mode == "seq-mean-token-sum":
        return math.fsum(sums) / len(rows)
    if mode == "seq-mean-token-mean":
        return math.fsum(total / len(row) for total, row in zip(sums, rows, strict=True)) / len(rows)
    assert mode == "seq-mean-token-sum-norm"
    return math.fsum(sums) / (len(rows) * horizon)
