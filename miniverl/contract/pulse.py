"""This file holds Pulse: the sign of life a role pushes to the controller once a second."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Pushed from a daemon thread of the role; the reply carries the controller's directive."""

    role: str
    process: int
    """Process id."""
    phase: str
    """The call being served, or idle."""
    progress: int
    """Counts up while the phase advances."""
    busy_seconds: float
    """Time spent inside calls so far."""
    calls: int
    """Calls served so far."""
    peak_rss: int
    """Peak resident memory of the process in bytes."""
