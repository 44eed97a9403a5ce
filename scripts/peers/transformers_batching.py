"""This file holds the worker of transformers' own continuous batching."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, GenerationConfig
from worker import STOCHASTIC, Generate, serve


def prepare(job: dict[str, Any]) -> Generate:
    torch.set_num_threads(job["threads"])
    module = AutoModelForCausalLM.from_pretrained(
        job["model"], dtype=torch.float32, attn_implementation="paged|sdpa"
    ).eval()
    inputs = [prompt for prompt in job["prompts"] for _ in range(job["samples"])]

    def generate(mode: str) -> int:
        chance = {"do_sample": True, **STOCHASTIC} if mode == "stochastic" else {"do_sample": False}
        config = GenerationConfig(
            max_new_tokens=job["response_tokens"], eos_token_id=-1, pad_token_id=0, num_blocks=512,
            max_batch_tokens=512, **chance,
        )  # fmt: skip
        made = module.generate_batch(inputs=inputs, generation_config=config)
        return sum(len(output.generated_tokens) for output in made.values())

    return generate


serve(prepare)
