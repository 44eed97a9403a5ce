"""This file holds Slots: the state of the rows being decoded, kept on the device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from miniverl.contract.request import Sampling
from miniverl.engines.assemble import Sample
from miniverl.engines.cached.philox import uniforms
from miniverl.engines.cached.sampler import Draw


class Slots:
    """A row per slot. A row that is not alive goes on computing, into places nobody reads."""

    def __init__(self, sampling: Sampling, *, rows: int, vocabulary: int, device: torch.device) -> None:
        limit = sampling.max_new_tokens
        self._limit = limit
        self._seeded = not sampling.greedy
        self._stops = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        self._stops[[token for token in sampling.stop_token_ids if token < vocabulary]] = True
        self.alive = torch.zeros(rows, dtype=torch.bool, device=device)
        self._next = torch.zeros(rows, dtype=torch.int64, device=device)
        """The token to feed."""
        self._start = torch.zeros(rows, dtype=torch.int64, device=device)
        """Position of the last prompt token."""
        self._written = torch.zeros(rows, dtype=torch.int64, device=device)
        """Response tokens drawn."""
        self._uniforms = torch.zeros((rows, limit + 1), dtype=torch.float64, device=device)
        # One column more than the limit: there, or beyond their end, rows that are not alive write.
        self._tokens = torch.zeros((rows, limit + 1), dtype=torch.int64, device=device)
        scores = limit + 1 if sampling.logprobs else 0
        self._logps = torch.zeros((rows, scores), device=device)
        self._behaviour = torch.zeros((rows, scores if sampling.truncates else 0), device=device)

    def admit(
        self, slots: Sequence[int], *, tokens: Sequence[int], starts: Sequence[int], seeds: Sequence[int]
    ) -> None:
        """Starts samples: their last prompt tokens, the positions of those, and their seeds."""
        device = self.alive.device
        rows = torch.tensor(slots, device=device)
        self._next[rows] = torch.tensor(tokens, device=device)
        self._start[rows] = torch.tensor(starts, device=device)
        self._written[rows] = 0
        self.alive[rows] = True
        if self._seeded:
            self._uniforms[rows, : self._limit] = uniforms(torch.tensor(seeds, device=device), self._limit)

    def move(self, rows: Sequence[tuple[int, int]]) -> None:
        """Moves rows, given as (from, to). What stays behind is not alive."""
        origins, targets = (torch.tensor(side, device=self.alive.device) for side in zip(*rows, strict=True))
        for table in (self.alive, self._next, self._start, self._written, self._uniforms,
                      self._tokens, self._logps, self._behaviour):  # fmt: skip
            table[targets] = table[origins]
        self.alive[origins] = False

    def feed(self, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Of the first rows: the tokens to feed, their positions, and the uniforms that decide what follows."""
        written = self._written[:rows]
        drawn = self._uniforms[:rows].gather(1, written[:, None])[:, 0] if self._seeded else self._uniforms[:rows, 0]
        return self._next[:rows], self._start[:rows] + written, drawn

    def record(self, draw: Draw) -> None:
        """Takes the drawn tokens; rows that reach a stop token or the limit are not alive afterwards."""
        rows = len(draw.tokens)
        alive, written = self.alive[:rows], self._written[:rows]
        column = written[:, None]
        self._next[:rows] = draw.tokens
        self._tokens[:rows].scatter_(1, column, draw.tokens[:, None])
        if draw.logps is not None:
            self._logps[:rows].scatter_(1, column, draw.logps[:, None])
        if draw.behaviour_logps is not None:
            self._behaviour[:rows].scatter_(1, column, draw.behaviour_logps[:, None])
        written += alive
        alive &= (written < self._limit) & ~self._stops[draw.tokens]

    def ids(self, slots: Sequence[int]) -> list[list[int]]:
        """The tokens drawn so far in these slots."""
        rows = torch.tensor(slots, device=self.alive.device)
        written = self._written[rows].tolist()
        return [ids[:length] for ids, length in zip(self._tokens[rows].tolist(), written, strict=True)]

    def end(self, slots: Sequence[int]) -> None:
        """Rows that something outside the device ended."""
        self.alive[slots] = False

    def read(self, slots: Sequence[int]) -> list[Sample]:
        """The finished responses in these slots."""
        rows = torch.tensor(slots, device=self.alive.device)
        lengths = self._written[rows].tolist()
        tokens = self._tokens[rows].cpu().numpy()
        logps, behaviour = (
            table[rows].cpu().numpy() if table.shape[1] else None for table in (self._logps, self._behaviour)
        )
        return [
            Sample(
                tokens=tokens[line, :length],
                logps=None if logps is None else logps[line, :length],
                behaviour_logps=None if behaviour is None else behaviour[line, :length],
            )
            for line, length in enumerate(lengths)
        ]
