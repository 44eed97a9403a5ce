"""This file holds Scheduler: which sample sits in which slot, and who comes next. It touches no tensor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from miniverl.contract.request import GenerationRequest
from miniverl.engines.assemble import Sample

PREFILL_TOKENS = 2048
"""Padded tokens of one prefill, of more than one prompt."""

Prefix = TypeVar("Prefix")
"""What holds the prefilled prompts of one physical batch; freed when its last sample is admitted."""


@dataclass(slots=True, kw_only=True, eq=False)
class OpenGroup:
    """A group some of whose samples are not finished."""

    requests: tuple[GenerationRequest, ...]
    samples: dict[int, Sample] = field(default_factory=dict)

    def in_order(self) -> list[Sample]:
        return [self.samples[index] for index in range(len(self.requests))]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Admission(Generic[Prefix]):
    """A sample that takes a slot."""

    group: OpenGroup
    index: int
    prefix: Prefix
    row: int
    """Row of the prompt within ``prefix``."""

    @property
    def request(self) -> GenerationRequest:
        return self.group.requests[self.index]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Live:
    group: OpenGroup
    index: int
    length_at_zero: int
    """Tokens the row would have held when the scheduler's clock stood at zero."""


class Scheduler(Generic[Prefix]):
    """Slots are refilled at once; when nobody waits, the last live rows close the gaps: live rows come first."""

    def __init__(
        self,
        groups: Iterable[tuple[GenerationRequest, ...]],
        *,
        slots: int,
        prefill: Callable[[Sequence[np.ndarray]], Prefix],
    ) -> None:
        self._fresh = deque(OpenGroup(requests=group) for group in groups)
        self._ready: deque[Admission[Prefix]] = deque()
        self._live: list[_Live | None] = []
        self._slots = slots
        self._prefill = prefill
        self._clock = 0

    @property
    def unfinished(self) -> bool:
        return bool(self._fresh or self._ready or self.occupied())

    @property
    def live(self) -> int:
        """Rows, from the first on, that the coming pass must be made over."""
        return len(self._live)

    def advance(self, steps: int) -> int:
        """Counts decode steps and returns how many tokens the longest row may hold after them."""
        self._clock += steps
        return max(row.length_at_zero for row in self._live if row is not None) + self._clock

    def refill(self) -> list[tuple[int, Admission[Prefix]]]:
        """Gives free slots to waiting samples, prefilling prompts when none is ready."""
        taken = []
        for slot in self._free():
            if not self._ready and self._fresh:
                self._prepare()
            if not self._ready:
                break
            taken.append((slot, self._seat(slot, self._ready.popleft())))
        return taken

    def finish(self, samples: Iterable[tuple[int, Sample]]) -> list[OpenGroup]:
        """Takes finished samples out of their slots and returns the groups that they complete."""
        complete = []
        for slot, sample in samples:
            row = self._live[slot]
            assert row is not None, f"slot {slot} finished and was empty"
            self._live[slot] = None
            row.group.samples[row.index] = sample
            if len(row.group.samples) == len(row.group.requests):
                complete.append(row.group)
        return complete

    def close_gaps(self) -> list[tuple[int, int]]:
        """Moves the last live rows into empty slots; returns the moves as (from, to)."""
        moves = []
        while None in self._live:
            last = self._live.pop()
            if last is not None:
                gap = self._live.index(None)
                self._live[gap] = last
                moves.append((len(self._live), gap))
        return moves

    def occupied(self) -> list[int]:
        return [slot for slot, row in enumerate(self._live) if row is not None]

    def _free(self) -> list[int]:
        gaps = [slot for slot, row in enumerate(self._live) if row is None]
        return gaps + list(range(len(self._live), self._slots))

    def _prepare(self) -> None:
        groups = self._next_prompts()
        prefix = self._prefill([group.requests[0].prompt.ids for group in groups])
        self._ready.extend(
            Admission(group=group, index=index, prefix=prefix, row=row)
            for row, group in enumerate(groups)
            for index in range(len(group.requests))
        )

    def _next_prompts(self) -> list[OpenGroup]:
        """The next groups in order, as many as their padded prompts leave within PREFILL_TOKENS; at least one."""
        taken = [self._fresh.popleft()]
        longest = len(taken[0].requests[0].prompt.ids)
        while self._fresh:
            longest = max(longest, len(self._fresh[0].requests[0].prompt.ids))
            if longest * (len(taken) + 1) > PREFILL_TOKENS:
                break
            taken.append(self._fresh.popleft())
        return taken

    def _seat(self, slot: int, admission: Admission[Prefix]) -> Admission[Prefix]:
        held = len(admission.request.prompt.ids) - 1
        row = _Live(group=admission.group, index=admission.index, length_at_zero=held - self._clock)
        if slot == len(self._live):
            self._live.append(row)
        else:
            self._live[slot] = row
        return admission
