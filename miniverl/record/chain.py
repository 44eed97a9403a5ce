"""This file holds the chain: one digest that stands for every group of a run, in order."""

from __future__ import annotations

import hashlib

START = "0" * 64
"""The chain before the first group."""


def link(previous: str, digest: str) -> str:
    """chain_k = SHA-256(chain_{k-1} + digest_k), over their 64 hex digits each."""
    return hashlib.sha256((previous + digest).encode()).hexdigest()
