"""This file holds the derivation of random seeds: hashed from names, never drawn in passing."""

from __future__ import annotations

import hashlib
import json

SEEDS_VERSION = 1
"""Enters the experiment digest: another derivation is another experiment."""


def derive_seed(*names: str | int) -> int:
    """A 63-bit seed from names. Equal names give equal seeds on every machine; the order of calls is irrelevant.

    >>> derive_seed("order", 7, 0) == derive_seed("order", 7, 0)
    True
    >>> derive_seed("order", 7, 0) == derive_seed("order", 70)
    False
    """
    text = json.dumps(["miniverl-seeds", SEEDS_VERSION, *names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_for(run_seed: int, group_id: str, sample_index: int, policy_version: int) -> int:
    """The seed of one sample. Keyed by the group, not by the prompt: a repeated prompt gets different samples."""
    return derive_seed("sample", run_seed, group_id, sample_index, policy_version)
