"""This file holds Parcel: consecutive complete groups in cursor order, the unit that travels between roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from miniverl.contract.group import Group
from miniverl.errors import ContractError

KEPT, DROPPED, SURPLUS = "kept", "dropped", "surplus"
"""Fates of a group: learned from; refused by dynamic sampling; generated beyond the need."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parcel:
    """Groups of one step under one policy. Its borders follow from order and token counts alone, never from arrival."""

    step: int
    groups: tuple[Group, ...]
    fates: tuple[str, ...]
    """One per group."""

    def __post_init__(self) -> None:
        cursors = [group.cursor for group in self.groups]
        if not cursors or cursors != sorted(set(cursors)) or len(self.fates) != len(cursors):
            raise ContractError(
                "Parcel.groups", value=cursors, problem="not one fate each in strict cursor order", fix="a bug of ours"
            )

    @property
    def kept(self) -> tuple[Group, ...]:
        return tuple(group for group, fate in zip(self.groups, self.fates, strict=True) if fate == KEPT)

    @property
    def rows(self) -> int:
        """Trajectories of the kept groups."""
        return sum(group.samples for group in self.kept)

    @property
    def lengths(self) -> np.ndarray:
        """int32 [rows]; response tokens of the kept trajectories, in order."""
        return np.concatenate([group.lengths for group in self.kept])

    @property
    def response_tokens(self) -> int:
        """N: the number of positions a teacher judges."""
        return int(self.lengths.sum())


def padded_tokens(groups: Iterable[Group]) -> int:
    """Tokens of a rectangle around all rows: what a forward pass over the groups costs."""
    groups = tuple(groups)
    return sum(group.samples for group in groups) * max(group.longest for group in groups)


def parcels(groups: Iterable[Group], *, budget: int) -> Iterator[tuple[Group, ...]]:
    """Cuts a stream of groups in cursor order: a parcel closes when the next group would pass ``budget`` padded tokens.

    A single group above the budget is a parcel of its own.
    """
    pending: tuple[Group, ...] = ()
    for group in groups:
        if pending and padded_tokens((*pending, group)) > budget:
            yield pending
            pending = ()
        pending = (*pending, group)
    if pending:
        yield pending
