"""This file holds the slow twin of token sampling: plain Python loops over one row in float64."""

from __future__ import annotations

import math

import numpy as np


def uniform(seed: int, index: int) -> float:
    """The definition: numpy's own Philox, keyed by the seed, its counter at the token's index."""
    return float(np.random.Generator(np.random.Philox(key=seed, counter=index)).random())


def keep(logps: np.ndarray, *, top_k: int, top_p: float) -> list[int]:
    """Ids kept, in id order: the k likeliest, and of these the fewest whose mass reaches top_p of theirs."""
    ranked = sorted(range(len(logps)), key=lambda i: (-logps[i], i))
    if top_k:
        ranked = ranked[:top_k]
    masses = [math.exp(float(logps[i])) for i in ranked]
    if top_p >= 1.0:
        return sorted(ranked)
    total, reached, chosen = sum(masses), 0.0, []
    for i, mass in zip(ranked, masses, strict=True):
        chosen.append(i)
        reached += mass
        if reached >= top_p * total:
            break
    return sorted(chosen)


def pick(logps: np.ndarray, ids: list[int], u: float) -> tuple[int, float]:
    """The first of ``ids`` whose cumulative mass exceeds u times the total, and its renormalised log-prob."""
    masses = [math.exp(float(logps[i])) for i in ids]
    total, reached = sum(masses), 0.0
    for i, mass in zip(ids, masses, strict=True):
        reached += mass
        if reached > u * total:
            return i, float(logps[i]) - math.log(total)
    raise AssertionError("u is below 1")
