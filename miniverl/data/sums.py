"""This file holds the sums: the task of the embedded default, integer addition written as text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from miniverl.errors import DataError

DATA_SOURCE = "miniverl/sums"
TRAIN, VALIDATION, HELDOUT = "train", "validation", "heldout"
SPLITS = (TRAIN, VALIDATION, HELDOUT)

MOST_ROWS = 50_000
"""Most distinct rows of one split. Every bucket holds far more, so that drawing distinct pairs stays quick."""

_LOWEST = np.array([0, 10, 100])
_BEYOND = np.array([10, 100, 1000])
_BLOCK = 1024


def packaged_seed(*names: str | int) -> int:
    """A 63-bit seed from names, for what is made once and packaged.

    Apart from ``miniverl.seeds`` on purpose: when the seeds of a run are derived anew, the packaged models and files
    must still be remade to the same bytes.
    """
    text = "\x00".join(["miniverl-seeds-1", *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def bucket(a: int, b: int) -> str:
    """The split a pair belongs to, for ever: 8 of 10 pairs are train, 1 validation, 1 held-out.

    A pair and its mirror image fall together, or the held-out sums would be trained on with their operands swapped.

    >>> bucket(12, 345) == bucket(345, 12)
    True
    """
    small, large = sorted((int(a), int(b)))
    tenth = int.from_bytes(hashlib.sha256(f"{small}+{large}".encode()).digest()[:8], "big") % 10
    return {0: VALIDATION, 1: HELDOUT}.get(tenth, TRAIN)


def pairs(split: str, *, seed: int) -> Iterator[tuple[int, int]]:
    """Endless operands of a split, with repetition; each operand has 1, 2 or 3 digits with equal chance."""
    generator = np.random.Generator(np.random.Philox(key=packaged_seed("sums", split, seed)))
    while True:
        digits = generator.integers(0, 3, size=(_BLOCK, 2))
        for a, b in generator.integers(_LOWEST[digits], _BEYOND[digits]).tolist():
            if bucket(a, b) == split:
                yield a, b


def distinct_pairs(split: str, *, seed: int) -> Iterator[tuple[int, int]]:
    """The pairs of ``pairs`` without repetition: rarer where few exist, as with two one-digit operands."""
    seen: set[tuple[int, int]] = set()
    for pair in pairs(split, seed=seed):
        if pair not in seen:
            seen.add(pair)
            yield pair


def question(a: int, b: int) -> str:
    return f"{a}+{b}"


def rows(split: str, *, count: int, seed: int) -> list[dict[str, Any]]:
    """``count`` distinct rows in verl's schema. Raises DataError when it is outside 1..MOST_ROWS."""
    if not 1 <= count <= MOST_ROWS:
        raise DataError(
            f"rows of {split}", value=count, problem="cannot be drawn", fix=f"ask for 1 to {MOST_ROWS} distinct sums"
        )
    return [
        {
            "data_source": DATA_SOURCE,
            "prompt": [{"role": "user", "content": question(a, b)}],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(a + b)},
            "extra_info": {"index": index, "split": split},
        }
        for index, (a, b) in enumerate(islice(distinct_pairs(split, seed=seed), count))
    ]
