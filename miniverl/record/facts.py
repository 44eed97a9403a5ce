"""This file holds Facts: where a journal stands, as a checkpoint quotes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Where a journal stands."""

    rows: int
    """Groups recorded, those of the open step included."""
    chain_head: str
    """Chain digest of the last of them."""
    cursor: int
    """Prompts taken by closed steps: where the open step starts."""
    lease: int
    """The present writer's lease."""
    probes: tuple[Mapping[str, Any], ...] = ()
    """What the conformance probes found, of the untrained policy and after the first update: equal in equal runs."""
