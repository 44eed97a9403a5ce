"""This file holds RowCache: static key/value memory with a write position per row, under transformers' interface."""

# Axes: R rows, Q positions fed, L positions read.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import Cache, PretrainedConfig

ALIGN = 8
"""Lengths read and chunks fed are multiples of this: at others the rounding of a row depends on its neighbours."""


def aligned(length: int) -> int:
    return -(-length // ALIGN) * ALIGN


class RowCache(Cache):
    """Keys and values of every layer in one tensor, [layers, 2, rows, length, heads, head size].

    ``place`` says where the coming forward pass writes; what lies beyond a row's position is never read, so rows are
    reused without clearing.
    """

    def __init__(
        self, config: PretrainedConfig, *, rows: int, length: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(layers=[])
        heads = config.num_key_value_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.rows, self.length = rows, aligned(length)
        # Zeros, because a masked position still multiplies its value by zero, and stray memory may hold NaN.
        self._memory = torch.zeros(
            (config.num_hidden_layers, 2, rows, self.length, heads, size), dtype=dtype, device=device
        )
        self._first = torch.arange(rows, device=device)[:, None] * self.length
        self._places = torch.arange(self.length, device=device)

    def place(self, positions_RQ: Tensor, *, length: int) -> Tensor:
        """Prepares one forward pass over the first R rows and returns its additive mask [R, 1, Q, L].

        ``length`` (L, aligned): how far the pass reads; positions lie below it.
        """
        rows = len(positions_RQ)
        self._window = rows, length
        self._written = (self._first[:rows] + positions_RQ).reshape(-1)
        hidden_RQL = self._places[:length] > positions_RQ[:, :, None]
        mask = torch.zeros(hidden_RQL.shape, dtype=self._memory.dtype, device=self._memory.device)
        return mask.masked_fill_(hidden_RQL, float("-inf"))[:, None]

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes one layer's states [R, heads, Q, size] and returns views [R, heads, L, size] of what may be read."""
        keys, values = self._memory[layer_idx]
        rows, length = self._window
        for memory, states in ((keys, key_states), (values, value_states)):
            states = states.transpose(1, 2).flatten(0, 1)
            memory.flatten(0, 1).index_copy_(0, self._written, states)
        return keys[:rows, :length].transpose(1, 2), values[:rows, :length].transpose(1, 2)

    def copy(self, source: RowCache, rows: Sequence[tuple[int, int]]) -> None:
        """Copies rows, given as (from, to), out of ``source``, which may be this cache itself."""
        length = min(self.length, source.length)
        origins, targets = (torch.tensor(side, device=self._memory.device) for side in zip(*rows, strict=True))
        self._memory[:, :, targets, :length] = source._memory[:, :, origins, :length]
