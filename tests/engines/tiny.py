"""This file holds tiny random policies for engine tests: real transformers models, seeded, made in milliseconds."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import GenerationRequest, Sampling, requests_for

VOCABULARY = 45
"""Ids in use; the models have 48 rows in their heads."""
STOPS = (7, 19, 30)

WINDOW = 12
"""Positions that a layer of the sliding kind sees."""

ARCHITECTURES = {
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, {}),
    "llama": (LlamaConfig, LlamaForCausalLM, {"num_key_value_heads": 1}),
    "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": WINDOW}),
    "gemma3": (
        Gemma3TextConfig,
        Gemma3ForCausalLM,
        {
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": WINDOW,
            "query_pre_attn_scalar": 16,
        },
    ),
}
"""By name: configuration, model and what it has of its own. Llama has groups of four heads."""


class TinyModel:
    """A PolicyModel over every weight of a tiny random model."""

    vocabulary = VOCABULARY

    def __init__(self, architecture: str = "qwen3") -> None:
        config, model, own = ARCHITECTURES[architecture]
        torch.manual_seed(0)
        shape = {
            "vocab_size": 48,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": 512,
            "tie_word_embeddings": False,
        }
        self.module = model(config(**{**shape, **own})).eval()
        self.loads = 0

    def load(self, policy: Policy) -> None:
        policy.verify()
        self.module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in policy.tensors.items()})
        self.loads += 1


@cache
def policy(architecture: str = "qwen3", *, version: int = 3, seed: int = 0) -> Policy:
    """Weights whose next-token distributions are neither flat nor peaked (about 2.5 of 3.8 nats)."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, weight in TinyModel(architecture).module.state_dict().items():
        if weight.dim() == 2:
            scale = 1.0 if "embed" in name else 1.5 / weight.shape[1] ** 0.5
            weight = torch.randn(weight.shape, generator=generator) * scale
        tensors[name] = weight.numpy()
    snapshot = PolicySnapshot(
        version=version, model_id="tiny", model_revision="", tokenizer_digest="", adapter_manifest="",
        tensor_digest=tensors_digest(tensors), base_digest="", dtype="float32", quantization="none",
        backend="any", backend_version="", profile="native", experiment="test",
    )  # fmt: skip
    return Policy(snapshot=snapshot, tensors=tensors)


def prompts(*lengths: int, seed: int = 1) -> list[tuple[int, Prompt]]:
    """Random prompts of these lengths, numbered by cursor."""
    generator = np.random.default_rng(seed)
    return [
        (cursor, Prompt(row=cursor, ids=generator.integers(0, VOCABULARY, length), data_source="d", ground_truth="g"))
        for cursor, length in enumerate(lengths)
    ]


def requests(
    *lengths: int, samples: int = 4, run_seed: int = 0, snapshot: PolicySnapshot | None = None, **sampling: object
) -> tuple[GenerationRequest, ...]:
    """Requests for prompts of these lengths under the default policy; by default T=1, 12 tokens, three stop ids."""
    defaults = {"temperature": 1.0, "max_new_tokens": 12, "stop_token_ids": STOPS}
    return requests_for(
        prompts(*lengths),
        snapshot or policy().snapshot,
        samples=samples,
        sampling=Sampling(**{**defaults, **sampling}),
        run_seed=run_seed,
    )


def decode(ids: list[int]) -> str:
    """Ids as words."""
    return " ".join(map(str, ids))
