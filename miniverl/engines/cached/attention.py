"""This file holds the attention of rows: grouped queries read keys and values where they lie, none are repeated."""

# Axes: R rows, H query heads, K key/value heads, Q positions fed, L positions read, D head size.

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, PretrainedConfig

NAME = "miniverl_rows"


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    *,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """[R, Q, H, D] of query [R, H, Q, D] over key and value [R, K, L, D], as transformers calls it.

    ``mask`` [R, 1, Q, L] is added to the scores. Heads H/K·k to H/K·(k+1) - 1 read key/value head k (Ainslie et al.
    2023). transformers itself repeats keys and values H/K times whenever a mask is given.
    """
    # An accelerator's kernels that take a mask know no groups; the CPU's do, and keep the bits of ungrouped heads.
    one_position = query.shape[2] == 1 and query.device.type != "cpu"
    return (folded if one_position else together)(query, key, value, mask, scaling=scaling), None


def together(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, scaling: float | None) -> Tensor:
    """The kernel reads a group's keys for each of its heads."""
    read = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling, enable_gqa=True)
    return read.transpose(1, 2).contiguous()


def folded(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, scaling: float | None) -> Tensor:
    """For Q = 1: the heads of a group become positions of one head."""
    rows, heads, _, size = query.shape
    query = query.view(rows, key.shape[1], -1, size)
    mask = mask.expand(rows, 1, query.shape[2], -1)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling).reshape(rows, 1, heads, size)


AttentionInterface.register(NAME, attend)


@contextmanager
def grouped(config: PretrainedConfig) -> Iterator[None]:
    """Within it the model of ``config`` attends this way; the model may serve others, who find it as it was."""
    before = config._attn_implementation  # noqa: SLF001 - transformers' own switch
    config._attn_implementation = NAME  # noqa: SLF001
    try:
        yield
    finally:
        config._attn_implementation = before  # noqa: SLF001
