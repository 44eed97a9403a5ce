"""This file holds the packer: a parcel cut into micro-batches by padded tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from miniverl.contract.group import Trajectory
from miniverl.contract.parcel import Parcel
from miniverl.models.logprobs import ResponseRows


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Consecutive trajectories of a parcel: one forward and backward pass."""

    rows: ResponseRows
    trajectories: tuple[Trajectory, ...]
    positions: slice
    """Where its response tokens lie among the parcel's N."""

    @property
    def lengths(self) -> torch.Tensor:
        """int64 [B]."""
        return torch.tensor(self.rows.lengths)

    def behaviour_logps(self) -> torch.Tensor | None:
        """float32 [n]; log-probs under the distribution the tokens were drawn from, as the engine recorded them."""
        return self._recorded([trajectory.group.behaviour() for trajectory in self.trajectories])

    def rollout_logps(self) -> torch.Tensor | None:
        """float32 [n]; full-vocabulary log-probs as the engine recorded them."""
        return self._recorded([trajectory.group.logps for trajectory in self.trajectories])

    def _recorded(self, columns: list[np.ndarray | None]) -> torch.Tensor | None:
        present = [column for column in columns if column is not None]
        if len(present) < len(columns):
            return None
        pairs = zip(self.trajectories, present, strict=True)
        return torch.from_numpy(np.concatenate([c[t.index, : t.group.lengths[t.index]] for t, c in pairs]))


def micro_batches(parcel: Parcel, *, budget: int) -> Iterator[MicroBatch]:
    """Cuts the kept trajectories, in order, wherever one more would pass ``budget`` padded tokens.

    Depends on order and lengths alone: floating-point sums do too, which is what makes two runs equal.
    A trajectory above the budget is a micro-batch of its own.
    """
    pending: list[Trajectory] = []
    start = 0
    for trajectory in (group.trajectory(index) for group in parcel.kept for index in range(group.samples)):
        if pending and (len(pending) + 1) * max(len(row.ids) for row in (*pending, trajectory)) > budget:
            yield (batch := _batch(pending, start))
            start = batch.positions.stop
            pending = []
        pending.append(trajectory)
    if pending:
        yield _batch(pending, start)


def _batch(trajectories: list[Trajectory], start: int) -> MicroBatch:
    width = max(len(trajectory.ids) for trajectory in trajectories)
    ids_BL = torch.zeros(len(trajectories), width, dtype=torch.int64)
    for row, trajectory in enumerate(trajectories):
        ids_BL[row, : len(trajectory.ids)] = torch.from_numpy(trajectory.ids.astype(np.int64))
    lengths = tuple(len(trajectory.response_ids) for trajectory in trajectories)
    return MicroBatch(
        rows=ResponseRows(
            ids_BL=ids_BL,
            prompt_lengths=tuple(len(trajectory.group.prompt_ids) for trajectory in trajectories),
            lengths=lengths,
        ),
        trajectories=tuple(trajectories),
        positions=slice(start, start + sum(lengths)),
    )
