"""This file holds the architectures: what a model's config.json says of its layers, and whether we compute them."""

from __future__ import annotations

from collections.abc import Mapping

from miniverl.errors import ModelError
from miniverl.plan.identity import ModelFolder

LAYERS = ("full_attention", "sliding_attention")
"""Kinds of layers, by config.json's names, whose keys and values the engines keep."""

FOREIGN: Mapping[str, str] = {
    "full_attention_interval": "layers of linear attention between those of full attention",
    "mamba_d_state": "state-space layers",
    "state_size": "state-space layers",
    "kv_lora_rank": "latent attention, whose keys and values are compressed",
    "attn_logit_softcapping": "attention scores that are capped",
    "final_logit_softcapping": "logits that are capped",
    "logits_scaling": "logits that are scaled",
    "logit_scale": "logits that are scaled",
}
"""Keys of config.json that mean something neither engine nor trainer computes, where they are set, and what."""

WORKS = "Qwen2, Qwen3, Llama, SmolLM2, Mistral and Gemma 3 text models work"


def refuse_foreign_layers(model: ModelFolder, *, field: str) -> None:
    """Raises ModelError for layers that no engine can decode, before anything is loaded."""
    kinds = [kind for kind in dict.fromkeys(model.config.get("layer_types") or ()) if kind not in LAYERS]
    found = [f"layers of the kind {kind!r}" for kind in kinds]
    found += [f"{what} ({key})" for key, what in FOREIGN.items() if model.config.get(key) not in (None, False, 1, 1.0)]
    if found:
        raise ModelError(field, value=model.id, problem=f"has {found[0]}, which are not built", fix=f"{WORKS}")
