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
    """Keys and values of every layer, each a tensor [rows · length, heads, head size].

    ``place`` says where the coming forward pass writes; what lies beyond a row's position is never read, so rows are
    reused without clearing. One tensor per layer and kind, not views of a large one: a compiler writes into those in
    place, and copies the large one at every write.
    """

    def __init__(
        self, config: PretrainedConfig, *, rows: int, length: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        super().__init__(layers=[])
        self.rows, self.length = rows, aligned(length)
        self._windows = windows(config)
        shape = (rows * self.length, config.num_key_value_heads, head_size(config))
        # Zeros, because a masked position still multiplies its value by zero, and stray memory may hold NaN.
        self._keys, self._values = (
            [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.num_hidden_layers)] for _ in range(2)
        )
        self._first = torch.arange(rows, device=device)[:, None] * self.length
        self._places = torch.arange(self.length, device=device)

    def place(self, positions_RQ: Tensor, *, length: int) -> Tensor | dict[str, Tensor]:
        """Prepares one forward pass over the first R rows and returns its additive mask [R, 1, Q, L].

        ``length`` (L, aligned): how far the pass reads; positions lie below it. A model with several kinds of layers
        gets a mask for each kind, by the kind's name.
        """
        self._written = (self._first[: len(positions_RQ)] + positions_RQ).reshape(-1)
        masks = {kind: self._mask(positions_RQ, length, window) for kind, window in self._windows.items()}
        self._any_mask = next(iter(masks.values()))
        return masks if len(masks) > 1 else self._any_mask

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Writes one layer's states [R, heads, Q, size] and returns views [R, heads, L, size] of what may be read."""
        return (
            self._write(self._keys[layer_idx], key_states),
            self._write(self._values[layer_idx], value_states),
        )

    def copy(self, source: RowCache, rows: Sequence[tuple[int, int]]) -> None:
        """Copies rows, given as (from, to), out of ``source``, which may be this cache itself."""
        length = min(self.length, source.length)
        origins, targets = (torch.tensor(side, device=self._places.device) for side in zip(*rows, strict=True))
        for mine, theirs in zip(self._keys + self._values, source._keys + source._values, strict=True):
            self._by_row(mine)[targets, :length] = source._by_row(theirs)[origins, :length]

    def _write(self, memory: Tensor, states: Tensor) -> Tensor:
        rows, length = self._any_mask.shape[0], self._any_mask.shape[-1]  # a number would be compiled in
        memory.index_copy_(0, self._written, states.transpose(1, 2).flatten(0, 1))
        return self._by_row(memory)[:rows, :length].transpose(1, 2)

    def _by_row(self, memory: Tensor) -> Tensor:
        """A view [rows, length, heads, size]."""
        return memory.view(self.rows, self.length, *memory.shape[1:])

    def _mask(self, positions_RQ: Tensor, length: int, window: int | None) -> Tensor:
        places, positions_RQ1 = self._places[:length], positions_RQ[:, :, None]
        hidden_RQL = places > positions_RQ1
        if window is not None:
            hidden_RQL |= places <= positions_RQ1 - window
        mask = torch.zeros(hidden_RQL.shape, dtype=self._keys[0].dtype, device=self._places.device)
        return mask.masked_fill_(hidden_RQL, float("-inf"))[:, None]


def head_size(config: PretrainedConfig) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def windows(config: PretrainedConfig) -> dict[str, int | None]:
    """By kind of layer, how many positions it sees, its own included; None: all before it."""
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    kinds = getattr(config, "layer_types", None)
    if kinds is None:
        return {"every layer": window}
    return {kind: window if kind == "sliding_attention" else None for kind in dict.fromkeys(kinds)}
