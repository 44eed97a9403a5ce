"""This file holds Sampler: one token for every row, drawn on the device."""

# Axes: R rows, V vocabulary.

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from miniverl.contract.request import Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The next token of every row."""

    tokens: Tensor
    """int64 [R]."""
    logps: Tensor | None
    """float32 [R]; full vocabulary, at the scoring temperature."""
    behaviour_logps: Tensor | None
    """float32 [R]; renormalised over what was kept. None when nothing can be cut."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """Temperature, then top-k, then top-p; the order and the meaning are vLLM's."""

    sampling: Sampling

    def __call__(self, logits_RV: Tensor, uniforms: Tensor) -> Draw:
        """``logits_RV``: float32. ``uniforms``: float64 [R] in [0, 1); unused when greedy."""
        sampling = self.sampling
        logps_RV = (logits_RV / sampling.scoring_temperature).log_softmax(-1)
        if sampling.greedy:
            tokens, total = logps_RV.argmax(-1), None  # the lowest id on ties
        else:
            mass_RV = logps_RV.double().exp()
            if sampling.truncates:
                mass_RV = mass_RV * kept(logps_RV, top_k=sampling.top_k, top_p=sampling.top_p)
            tokens, total = invert(mass_RV, uniforms)
        if not sampling.logprobs:
            return Draw(tokens=tokens, logps=None, behaviour_logps=None)
        logps = logps_RV.gather(-1, tokens[:, None])[:, 0]
        behaviour = (logps - total.log()).float() if sampling.truncates and total is not None else None
        return Draw(tokens=tokens, logps=logps, behaviour_logps=behaviour)


def kept(logps_RV: Tensor, *, top_k: int, top_p: float) -> Tensor:
    """bool [R, V]; the smallest set of the ``top_k`` likeliest ids (0: all) whose mass reaches ``top_p`` of theirs.

    The id that crosses is kept; of equally likely ids the lower comes first.
    """
    sorted_RV, ids_RV = logps_RV.sort(dim=-1, descending=True, stable=True)
    mass_RV = sorted_RV.double().exp()
    if top_k:
        mass_RV[:, top_k:] = 0.0
    keep_RV = mass_RV > 0
    if top_p < 1.0:
        reached_RV = mass_RV.cumsum(-1)
        keep_RV &= reached_RV - mass_RV < top_p * reached_RV[:, -1:]
    return torch.zeros_like(keep_RV).scatter_(-1, ids_RV, keep_RV)


def invert(mass_RV: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Per row the first id whose cumulative mass exceeds u times the total, and the total. float64 in, ids [R] out.

    Ids without mass are never drawn, not even where a parallel sum rises by a rounding error.
    """
    reached_RV = mass_RV.cumsum(-1) * (mass_RV > 0)
    total = reached_RV.amax(-1)
    return (reached_RV > (uniforms * total)[:, None]).to(torch.uint8).argmax(-1), total
