"""This file holds the rollout benchmark: hf_cached against hf_reference on one batch, interleaved.

python scripts/bench_rollout.py [--model FOLDER] [--json OUT]
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from transformers import AutoModelForCausalLM

from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import GenerationRequest, Sampling, requests_for
from miniverl.data.packaged import is_resource, resource
from miniverl.engines.cached.engine import CachedEngine
from miniverl.engines.reference import ReferenceEngine


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What both engines are asked for."""

    prompts: int
    samples: int
    prompt_tokens: int
    response_tokens: int


class FixedModel:
    """A PolicyModel that keeps the weights of its folder."""

    def __init__(self, folder: Path) -> None:
        self.module = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.vocabulary = self.module.config.vocab_size

    def load(self, policy: Policy) -> None:
        """Nothing to copy."""


def fixed_policy() -> Policy:
    names = (
        "model_id", "model_revision", "tokenizer_digest", "adapter_manifest", "tensor_digest", "base_digest", "dtype",
        "quantization", "backend", "backend_version", "profile", "experiment",
    )  # fmt: skip
    return Policy(snapshot=PolicySnapshot(version=0, **dict.fromkeys(names, "")), tensors={})


def batch(workload: Workload, *, vocabulary: int, snapshot: PolicySnapshot) -> tuple[GenerationRequest, ...]:
    """Random prompts; no stop token, so that every response has its full length."""
    random = np.random.default_rng(0)
    prompts = [
        (cursor, Prompt(row=cursor, ids=random.integers(0, vocabulary, workload.prompt_tokens), data_source="",
                        ground_truth=None))
        for cursor in range(workload.prompts)
    ]  # fmt: skip
    sampling = Sampling(temperature=1.0, max_new_tokens=workload.response_tokens, stop_token_ids=())
    return requests_for(prompts, snapshot, samples=workload.samples, sampling=sampling, run_seed=0)


def rate(engine: CachedEngine | ReferenceEngine, requests: Sequence[GenerationRequest]) -> float:
    """Tokens per second of one generation."""
    start = perf_counter()
    tokens = sum(group.response_tokens for group in engine.generate(requests))
    return tokens / (perf_counter() - start)


def measure(folder: Path, workload: Workload, *, repeats: int) -> dict[str, object]:
    policy, models = fixed_policy(), (FixedModel(folder), FixedModel(folder))
    cached = CachedEngine(
        models[0],
        decode=lambda ids: "",
        slots=workload.prompts * workload.samples,
        max_length=workload.prompt_tokens + workload.response_tokens,
        deterministic=torch.get_num_threads() == 1,
    )
    reference = ReferenceEngine(models[1], decode=lambda ids: "")
    for engine in (cached, reference):
        engine.synchronize(policy)
    requests = batch(workload, vocabulary=models[0].vocabulary, snapshot=policy.snapshot)
    rate(cached, requests)  # the first generation allocates
    pairs = [(rate(cached, requests), rate(reference, requests)) for _ in range(repeats)]
    fast, slow = (statistics.median(side) for side in zip(*pairs, strict=True))
    counts = cached.metrics()
    return {
        "workload": asdict(workload),
        "threads": torch.get_num_threads(),
        "hf_cached_tokens_per_second": fast,
        "hf_reference_tokens_per_second": slow,
        "ratio": statistics.median(a / b for a, b in pairs),
        "decode_ms_per_step": 1e3 * counts["seconds_decode"] / counts["decode_steps"],
        "prefill_ms_per_prompt": 1e3 * counts["seconds_prefill"] / counts["prefills"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="hf_cached against hf_reference on one batch, interleaved.")
    parser.add_argument("--model", default="miniverl://tiny-student", help="a model folder or a packaged model")
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--response-tokens", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write the figures here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = resource(options.model) if is_resource(options.model) else Path(options.model)
    workload = Workload(
        prompts=options.prompts,
        samples=options.samples,
        prompt_tokens=options.prompt_tokens,
        response_tokens=options.response_tokens,
    )
    figures = measure(folder, workload, repeats=options.repeats)
    for name, value in figures.items():
        print(f"{name:<32}{value:.2f}" if isinstance(value, float) else f"{name:<32}{value}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
