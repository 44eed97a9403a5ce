"""This file holds the worker of transformers' generate: one static batch, with the faster of its two caches."""

from __future__ import annotations

import time
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from worker import STOCHASTIC, Generate, serve


def prepare(job: dict[str, Any]) -> Generate:
    torch.set_num_threads(job["threads"])
    module = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32).eval()
    module.generation_config.eos_token_id = None
    ids = torch.tensor([prompt for prompt in job["prompts"] for _ in range(job["samples"])])
    length = job["response_tokens"]

    def run(mode: str, cache: str) -> int:
        torch.manual_seed(0)
        chance = {"do_sample": True, **STOCHASTIC} if mode == "stochastic" else {"do_sample": False}
        made = module.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=length, min_new_tokens=length,
            cache_implementation=cache, pad_token_id=0, **chance,
        )  # fmt: skip
        return (made.shape[1] - ids.shape[1]) * len(ids)

    def seconds(cache: str) -> float:
        run("greedy", cache)
        began = time.perf_counter()
        run("greedy", cache)
        return time.perf_counter() - began

    best = min(("dynamic", "static"), key=seconds)
    return lambda mode: run(mode, best)


serve(prepare)
