"""This file holds importance weights: how likely a sampled token is now, against when it was drawn."""

from __future__ import annotations

from torch import Tensor


def truncated_is(own_logps_N: Tensor, behaviour_logps_N: Tensor, *, cap: float) -> Tensor:
    """exp(own - behaviour) per token, at most ``cap`` (> 0), detached, [N].

    ``behaviour_logps_N`` are of the distribution the tokens were really drawn from: renormalised under top-p/top-k.
    Truncation bounds the variance and biases towards the behaviour; Ionides 2008, "Truncated importance sampling".
    """
    return (own_logps_N.detach() - behaviour_logps_N.detach()).exp().clamp(max=cap)
