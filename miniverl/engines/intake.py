"""This file holds the intake: what an engine demands of its requests before any model runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from miniverl.contract.request import GenerationRequest
from miniverl.errors import ContractError


def whole_groups(
    requests: Sequence[GenerationRequest], *, max_length: int | None = None
) -> list[tuple[GenerationRequest, ...]]:
    """The requests cut into complete groups, in the order they came.

    ``max_length``: the most tokens of prompt and response together; None is no limit. Raises ContractError for a
    group that is incomplete or out of order, for samplings that differ and for a prompt that leaves no room.
    """
    groups = [tuple(members) for _, members in groupby(requests, key=lambda request: request.group_id)]
    for group in groups:
        _refuse_broken(group)
    for request in requests:
        _refuse_unservable(request, requests[0], max_length)
    return groups


def _refuse_broken(group: tuple[GenerationRequest, ...]) -> None:
    found = [request.sample_index for request in group]
    if found != list(range(group[0].samples)):
        raise ContractError(
            f"group {group[0].group_id}",
            value=found,
            problem=f"expected sample indices 0..{group[0].samples - 1}, together and in order",
            fix="build the requests with requests_for()",
        )


def _refuse_unservable(request: GenerationRequest, first: GenerationRequest, max_length: int | None) -> None:
    sampling = request.sampling
    if sampling != first.sampling:
        raise ContractError(
            f"request {request.request_id}",
            value=sampling,
            problem=f"differs from {first.sampling}, the sampling of this call's first request",
            fix="call generate() once per sampling",
        )
    length = len(request.prompt.ids) + sampling.max_new_tokens
    if max_length is not None and length > max_length:
        raise ContractError(
            f"request {request.request_id}",
            value=length,
            problem=f"prompt and response limit together exceed the engine's max_length of {max_length} tokens",
            fix="shorten the prompt or max_new_tokens, or make the engine with a larger max_length",
        )
