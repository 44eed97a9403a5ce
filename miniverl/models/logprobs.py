"""This file holds log-probs of response tokens, computed in chunks so that [B, T, V] never exists."""

# Axes: B rows, L padded length, N response positions of all rows one after another, C positions of a chunk,
# H hidden size, V ids the tokenizer can produce.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseRows:
    """Rows of prompt + response, right-padded; padding follows everything real, so causal attention needs no mask."""

    ids_BL: torch.Tensor
    """int64; 0 beyond each row."""
    prompt_lengths: tuple[int, ...]
    lengths: tuple[int, ...]
    """Response tokens per row."""

    @property
    def positions(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(row, column) of every response token: two int64 tensors [N]."""
        spans = [torch.arange(p, p + n) for p, n in zip(self.prompt_lengths, self.lengths, strict=True)]
        rows = torch.repeat_interleave(torch.arange(len(spans)), torch.tensor(self.lengths))
        return rows, torch.cat(spans)


def response_hidden(module: PreTrainedModel, rows: ResponseRows) -> tuple[torch.Tensor, torch.Tensor]:
    """Hidden states that predict each response token, [N, H], and those tokens' ids, [N]."""
    device = module.get_input_embeddings().weight.device
    ids_BL = rows.ids_BL.to(device)
    hidden_BLH = module.get_decoder()(input_ids=ids_BL, use_cache=False).last_hidden_state
    row, column = (index.to(device) for index in rows.positions)
    return hidden_BLH[row, column - 1], ids_BL[row, column]


class Head:
    """The LM head in float32, cast once for all chunks: logits and softmax are float32 whatever the model computes in.

    Rows beyond ``vocabulary``, the ids the tokenizer can produce, never enter a distribution.
    """

    def __init__(self, module: PreTrainedModel, *, vocabulary: int) -> None:
        head = module.get_output_embeddings()
        self._weight_VH = head.weight[:vocabulary].float()
        self._bias_V = None if head.bias is None else head.bias[:vocabulary].float()

    def logps(self, hidden_CH: torch.Tensor, *, temperature: float) -> torch.Tensor:
        """float32 [C, V]; log-softmax of logits / temperature."""
        logits_CV = F.linear(hidden_CH.float(), self._weight_VH, self._bias_V)
        return F.log_softmax(logits_CV / temperature, dim=-1)


def chunks(positions: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` that cover 0..positions."""
    for start in range(0, positions, size):
        yield slice(start, min(start + size, positions))
