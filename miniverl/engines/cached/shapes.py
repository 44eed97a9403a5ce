"""This file holds Shapes: over how many rows a decode pass is made, and how far it reads."""

from __future__ import annotations

from dataclasses import dataclass

from miniverl.engines.cached.cache import aligned

FEWEST_ROWS = 4
"""A pass over fewer rows rounds differently, so none is made; dead rows fill up."""
PARTS = 4
"""Lengths of coarse shapes; their row counts are all slots and a quarter of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Every shape is computed without a pause for compiling or capturing: there are few, and all are known at start."""

    slots: int
    """Most rows; at least FEWEST_ROWS."""
    length: int
    """Most positions of a row; aligned."""
    coarse: bool
    """Eight shapes, for what is captured once per shape. Else rows by powers of two and lengths by eight."""

    def rows(self, live: int) -> int:
        """Rows of a pass over ``live`` of them, which come first."""
        if self.coarse:
            quarter = max(FEWEST_ROWS, self.slots // PARTS)
            return quarter if live <= quarter else self.slots
        return min(max(FEWEST_ROWS, 1 << (live - 1).bit_length()), self.slots)

    def reach(self, tokens: int) -> int:
        """Positions read when the longest row may hold ``tokens``."""
        step = aligned(-(-self.length // PARTS)) if self.coarse else aligned(1)
        return min(-(-tokens // step) * step, self.length)

    def every(self) -> list[tuple[int, int]]:
        """(rows, reach) of all shapes."""
        rows = sorted({self.rows(live) for live in range(1, self.slots + 1)})
        reaches = sorted({self.reach(tokens) for tokens in range(1, self.length + 1)})
        return [(one, reach) for one in rows for reach in reaches]
