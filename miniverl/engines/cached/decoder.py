"""This file holds Decoder: the passes of a Hugging Face model that an engine needs, prefill and one token."""

# Axes: R rows, Q positions fed, V vocabulary.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from miniverl.engines.cached.attention import grouped
from miniverl.engines.cached.cache import ALIGN, RowCache, aligned
from miniverl.engines.cached.compiled import NO_COMPILER, CapturedPass, compiled
from miniverl.engines.cached.shapes import Shapes
from miniverl.errors import ModelError

CHUNK = 16 * ALIGN
"""Most positions of a prompt fed at once. A chunk also reads this far from its own beginning, however short it is:
attention splits its sums by the length read, and that must not depend on which prompts share the pass."""


class Decoder:
    """An unmodified transformers model, called below its LM head."""

    def __init__(self, module: nn.Module, *, vocabulary: int) -> None:
        model = cast(PreTrainedModel, module)
        head = model.get_output_embeddings()
        if type(head) is not nn.Linear:
            raise ModelError(
                "LM head", value=type(head).__name__, problem="is not a plain linear layer", fix="leave it untouched"
            )
        self._model: nn.Module = model.get_decoder()
        self._one_token: Callable[..., Any] = self._model
        self._config = model.config
        self.vocabulary = vocabulary
        self._dtype, self.device = head.weight.dtype, head.weight.device
        self._output = head
        # Logits are float32 whatever the base computes in; the trainer does the same.
        self._head = head.weight[:vocabulary].float()
        self._bias = None if head.bias is None else head.bias[:vocabulary].float()
        self._captured: dict[tuple[int, int], CapturedPass] = {}
        self.passes = 0

    @property
    def captures(self) -> bool:
        """Whether passes are captured once per shape, so that shapes must be few."""
        return bool(self._captured)

    @property
    def compiled(self) -> bool:
        return self._one_token is not self._model

    @torch.no_grad()
    def refresh(self) -> None:
        """Takes up weights that changed in place. A captured pass reads the head where it lies, so it stays there."""
        if self._dtype == torch.float32:
            return  # the head is the model's own
        self._head.copy_(self._output.weight[: self.vocabulary])
        if self._bias is not None:
            self._bias.copy_(self._output.bias[: self.vocabulary])

    def cache(self, *, rows: int, length: int) -> RowCache:
        return RowCache(self._config, rows=rows, length=length, dtype=self._dtype, device=self.device)

    def compile(self, cache: RowCache) -> None:
        """Compiles the pass of one token and warms it up over ``cache``, in which no row may be live yet.

        Every shape that Shapes knows for this cache then runs without another compilation. Where there is no compiler
        the pass stays as it is, which ``compiled`` tells.
        """
        self._captured = {}
        self._one_token = compiled(self._model)
        shapes = Shapes(slots=cache.rows, length=cache.length, coarse=self.device.type == "cuda")
        every = shapes.every()
        try:
            for rows, length in every if shapes.coarse else corners(every):
                self._try(rows, length, cache)
        except NO_COMPILER:
            self._one_token = self._model
        if shapes.coarse:
            self._captured = {shape: self._capture(*shape, cache) for shape in every}

    def logits(self, tokens: Tensor, positions: Tensor, *, cache: RowCache, length: int) -> Tensor:
        """float32 [R, V]; feeds one token per row. ``tokens``, ``positions``: int64 [R]; reads up to ``length``."""
        self.passes += 1
        captured = self._captured.get((len(tokens), length))
        return captured(tokens, positions) if captured else self._logits(tokens, positions, cache, length)

    def prefill(self, prompts: Sequence[np.ndarray]) -> RowCache:
        """Keys and values of the prompts, a row each, without their last tokens.

        The last token is left out: it is fed as the first decode step, whose hidden state the first draw needs, so
        that the first draw and all later ones take one path. Shorter prompts are padded on the right with states
        that decoding overwrites before it reads them.
        """
        length = aligned(max(len(ids) for ids in prompts) - 1)
        table = np.zeros((len(prompts), length), np.int64)
        for line, ids in zip(table, prompts, strict=True):
            line[: len(ids) - 1] = ids[:-1]
        ids_RQ = torch.from_numpy(table).to(self.device)
        cache = self.cache(rows=len(prompts), length=-(-length // CHUNK) * CHUNK)
        for begin in range(0, length, CHUNK):
            end = min(begin + CHUNK, length)
            positions_RQ = torch.arange(begin, end, device=self.device).expand(len(prompts), -1)
            self.passes += 1
            self._feed(self._model, ids_RQ[:, begin:end], positions_RQ, cache=cache, length=begin + CHUNK)
        return cache

    def _logits(self, tokens: Tensor, positions: Tensor, cache: RowCache, length: int) -> Tensor:
        hidden = self._feed(self._one_token, tokens[:, None], positions[:, None], cache=cache, length=length)
        return nn.functional.linear(hidden[:, -1].float(), self._head, self._bias)

    def _feed(
        self, model: Callable[..., Any], ids_RQ: Tensor, positions_RQ: Tensor, *, cache: RowCache, length: int
    ) -> Tensor:
        mask = cache.place(positions_RQ, length=length)
        with grouped(self._config):
            return model(
                input_ids=ids_RQ,
                attention_mask=mask,
                position_ids=positions_RQ,
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state

    def _try(self, rows: int, length: int, cache: RowCache) -> None:
        zeros = torch.zeros(rows, dtype=torch.int64, device=self.device)
        self._logits(zeros, zeros, cache, length)

    def _capture(self, rows: int, length: int, cache: RowCache) -> CapturedPass:
        return CapturedPass(
            lambda tokens, positions: self._logits(tokens, positions, cache, length), rows=rows, device=self.device
        )


def corners(shapes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of all (rows, length): least and most of both, the odd ones first. What holds for sizes that are equal by chance
    is not learned from them."""
    rows, lengths = sorted({one for one, _ in shapes}), sorted({one for _, one in shapes})
    return list(dict.fromkeys((row, length) for row in (rows[0], rows[-1]) for length in (lengths[-1], lengths[0])))
