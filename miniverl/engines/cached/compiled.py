"""This file holds the compiled decode pass: compiled once for all shapes, on a GPU captured once for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._dynamo.exc import BackendCompilerFailed

Pass = Callable[[Tensor, Tensor], Tensor]
"""Logits [R, V] of tokens [R] at positions [R]."""

NO_COMPILER = BackendCompilerFailed
"""Raised at the first pass where nothing on this machine can compile it."""


def compiled(model: torch.nn.Module) -> Callable[..., Any]:
    """``model``, compiled at its first call. Sizes are symbols, so that other sizes need no other compilation."""
    return torch.compile(model, dynamic=True)


class CapturedPass:
    """A pass of one shape as a CUDA graph: launching it costs the host one call. Reads and writes fixed addresses."""

    REHEARSALS = 3
    """Passes before the capture: libraries allocate what they need in the first ones."""

    def __init__(self, run: Pass, *, rows: int, device: torch.device) -> None:
        self._tokens = torch.zeros(rows, dtype=torch.int64, device=device)
        self._positions = torch.zeros(rows, dtype=torch.int64, device=device)
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):
            for _ in range(self.REHEARSALS):
                run(self._tokens, self._positions)
        torch.cuda.current_stream(device).wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = run(self._tokens, self._positions)

    def __call__(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The result is overwritten by the next call."""
        self._tokens.copy_(tokens)
        self._positions.copy_(positions)
        self._graph.replay()
        return self._logits
