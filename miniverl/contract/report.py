"""This file holds StepReport: what a step did, as the journal records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptGroup:
    """One entry of the list that tells the trainer what it must have received."""

    id: str
    digest: str
    """The group's digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """The outcome of one step. Equal runs give equal reports: no clock and no host name inside."""

    step: int
    """Counts from 1. Its tokens were drawn under policy version ``step - 1``; closing it makes version ``step``."""
    updates: int
    """Optimizer updates done so far in the run."""
    skipped: int
    """Updates of this step that a non-finite gradient made the trainer skip."""
    tensor_digest: str
    """Digest of the trainable tensors after the step."""
    metrics: Mapping[str, float]
    """By declared metric name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Exact-match accuracy on held-out prompts, from real greedy generation."""

    subject: str
    """student or teacher."""
    step: int
    """Steps finished by the policy evaluated; 0 is before training."""
    accuracy: float
    """Share of prompts answered exactly, 0..1."""
    n: int
    """Prompts asked."""
    truncated: int
    """Answers that ran into the response limit."""
    mean_length: float
    """Response tokens, mean."""
    data_digest: str
    """Digest of the prompts asked."""
    tensor_digest: str
    """Digest of the trainable tensors evaluated; "" for the teacher."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint as the journal names it; a folder that no row names does not exist."""

    step: int
    """Steps finished."""
    folder: str
    """Relative to the run directory."""
    manifest_digest: str
    """SHA-256 of its manifest.json."""
    scheduled: bool
    """False when an interrupt made it: such a checkpoint seals no shard."""
