"""This file holds Decoder: the passes of a Hugging Face model that an engine needs, prefill and one token."""

# Axes: R rows, Q positions fed, V vocabulary.

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from miniverl.engines.cached.attention import grouped
from miniverl.engines.cached.cache import ALIGN, RowCache, aligned
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
        self._model = model.get_decoder()
        self._config = model.config
        self.vocabulary = vocabulary
        self._dtype, self.device = head.weight.dtype, head.weight.device
        self._output = head
        self.captures = False
        """Whether passes are captured once per shape, so that shapes must be few."""
        self.passes = 0
        self.refresh()

    def refresh(self) -> None:
        """Takes up weights that changed: the head is kept in float32, whatever the base computes in, as the trainer's.

        Where the base is float32 itself this copies nothing.
        """
        self._head = self._output.weight[: self.vocabulary].float()
        self._bias = None if self._output.bias is None else self._output.bias[: self.vocabulary].float()

    def cache(self, *, rows: int, length: int) -> RowCache:
        return RowCache(self._config, rows=rows, length=length, dtype=self._dtype, device=self.device)

    def logits(self, tokens: Tensor, positions: Tensor, *, cache: RowCache, length: int) -> Tensor:
        """float32 [R, V]; feeds one token per row. ``tokens``, ``positions``: int64 [R]; reads up to ``length``."""
        hidden = self._feed(tokens[:, None], positions[:, None], cache=cache, length=length)
        return nn.functional.linear(hidden[:, -1].float(), self._head, self._bias)

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
            self._feed(ids_RQ[:, begin:end], positions_RQ, cache=cache, length=begin + CHUNK)
        return cache

    def _feed(self, ids_RQ: Tensor, positions_RQ: Tensor, *, cache: RowCache, length: int) -> Tensor:
        self.passes += 1
        mask = cache.place(positions_RQ, length=length)
        with grouped(self._config):
            return self._model(
                input_ids=ids_RQ,
                attention_mask=mask,
                position_ids=positions_RQ,
                past_key_values=cache,
                use_cache=True,
            ).last_hidden_state
