"""This file holds the worker of vLLM, in its own process without a server."""

from __future__ import annotations

from typing import Any

from vllm import LLM, SamplingParams
from worker import STOCHASTIC, Generate, serve


def prepare(job: dict[str, Any]) -> Generate:
    length = job["response_tokens"]
    rows = len(job["prompts"]) * job["samples"]
    model = LLM(
        job["model"], dtype="float32", enforce_eager=job["eager"], enable_prefix_caching=False,
        max_model_len=len(job["prompts"][0]) + length, max_num_seqs=rows, kv_cache_memory_bytes=2**29,
        generation_config="vllm",
    )  # fmt: skip
    inputs = [{"prompt_token_ids": prompt} for prompt in job["prompts"] for _ in range(job["samples"])]

    def generate(mode: str) -> int:
        chance = STOCHASTIC if mode == "stochastic" else {"temperature": 0.0}
        sampling = [
            SamplingParams(**chance, max_tokens=length, ignore_eos=True, seed=seed, logprobs=0) for seed in range(rows)
        ]
        made = model.generate(inputs, sampling, use_tqdm=False)
        return sum(len(output.token_ids) for request in made for output in request.outputs)

    return generate


if __name__ == "__main__":  # vLLM starts processes that read this file again
    serve(prepare)
