"""This file holds Event: what a run tells whoever is watching it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

READY, STEP, EVALUATION, CHECKPOINT, NOTE, END = "ready", "step", "evaluation", "checkpoint", "note", "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of progress. Rendered by the driver; never recorded."""

    kind: str
    """ready, step, evaluation, checkpoint, note or end."""
    text: str
    """What to print, one line."""
    step: int = 0
    """Steps finished."""
    total: int = 0
    """Steps of the run."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the step, or accuracy and n of an evaluation."""
