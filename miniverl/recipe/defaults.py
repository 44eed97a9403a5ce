"""This file holds the defaults that depend on other keys: rows by objective and by what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BY_OBJECTIVE: Mapping[str, Mapping[str, Any]] = {
    "gkd": {},
    # A single sampled token is a noisy estimate: several samples a prompt, and weights against sampling mismatch.
    "sampled_k1": {"rollout.samples_per_prompt": 4, "distillation.rollout_is": "token"},
}
LEARNING_RATE = {"lora": 1e-4, "full": 1e-5}
"""LoRA learns at ten times the rate of full weights."""


def with_defaults(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The user's tree with what the schema cannot default by itself written beneath it. Returns a new tree."""
    filled = dict(tree)
    objective = tree.get("objective")
    rows = dict(BY_OBJECTIVE.get(objective, {})) if isinstance(objective, str) else {}
    for key, value in {**rows, "optim.lr": LEARNING_RATE[_trained(tree)]}.items():
        block, leaf = key.split(".")
        written = filled.get(block, {})
        if isinstance(written, Mapping):  # another type is the schema's to refuse
            filled[block] = {leaf: value, **written}
    return filled


def _trained(tree: Mapping[str, Any]) -> str:
    """Full weights are trained only where the recipe writes ``models.student.lora: null``."""
    models = tree.get("models")
    student = models.get("student") if isinstance(models, Mapping) else None
    return "full" if isinstance(student, Mapping) and student.get("lora", ...) is None else "lora"
