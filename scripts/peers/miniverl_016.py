"""This file holds the worker of the single-process peer, package miniverl 0.16: its hf_cached."""

from __future__ import annotations

from typing import Any

import torch
from miniverl.config.models import Quantization
from miniverl.models.hf import HFBackend
from transformers import AutoModelForCausalLM, AutoTokenizer
from worker import STOCHASTIC, Generate, serve


class Endless:
    """A tokenizer that names no end, so that every response has its full length."""

    eos_token_id = -1
    pad_token_id = 0

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def decode(self, ids: Any, **kwargs: Any) -> str:
        return self._tokenizer.decode(ids)


def prepare(job: dict[str, Any]) -> Generate:
    torch.set_num_threads(job["threads"])
    backend = HFBackend(
        model=AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32).eval(),
        tokenizer=Endless(AutoTokenizer.from_pretrained(job["model"])),
        model_id="m", model_revision=None, device="cpu", dtype=torch.float32, quantization=Quantization.NONE,
        gradient_checkpointing=False, attn_implementation="sdpa", lora=False,
    )  # fmt: skip
    if not job["eager"]:
        backend.enable_cached_generation_compilation()
    prompts = [prompt for prompt in job["prompts"] for _ in range(job["samples"])]

    def generate(mode: str) -> int:
        chance = STOCHASTIC if mode == "stochastic" else {"temperature": 0.0, "top_p": 1.0, "top_k": 0}
        made = backend.generate_batch_cached(
            prompts, max_new_tokens=job["response_tokens"], stop_sequences=(), seeds=list(range(len(prompts))),
            record_logprobs=True, **chance,
        )  # fmt: skip
        return sum(len(output.token_ids) for output in made)

    return generate


serve(prepare)
