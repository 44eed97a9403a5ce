"""This file holds our own worker: hf_cached on the base alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM
from worker import STOCHASTIC, Generate, serve

from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import Sampling, requests_for
from miniverl.engines.cached.engine import CachedEngine
from miniverl.models.frozen import FrozenModel


def prepare(job: dict[str, Any]) -> Generate:
    torch.set_num_threads(job["threads"])
    module = AutoModelForCausalLM.from_pretrained(Path(job["model"]), dtype=torch.float32).eval()
    prompts = [
        (row, Prompt(row=row, ids=np.array(ids), data_source="", ground_truth=None))
        for row, ids in enumerate(job["prompts"])
    ]
    engine = CachedEngine(
        FrozenModel(module, vocabulary=module.config.vocab_size),
        decode=lambda ids: "",
        slots=len(prompts) * job["samples"],
        max_length=len(job["prompts"][0]) + job["response_tokens"],
        deterministic=job["threads"] == 1,
        compiled=not job["eager"],
    )
    names = (
        "model_id", "model_revision", "tokenizer_digest", "adapter_manifest", "base_digest", "dtype", "quantization",
        "backend", "backend_version", "profile", "experiment",
    )  # fmt: skip
    from miniverl.contract.canonical import tensors_digest

    snapshot = PolicySnapshot(version=0, tensor_digest=tensors_digest({}), **dict.fromkeys(names, ""))
    engine.synchronize(Policy(snapshot=snapshot, tensors={}))

    def generate(mode: str) -> int:
        chance = STOCHASTIC if mode == "stochastic" else {"temperature": 0.0}
        sampling = Sampling(**chance, max_new_tokens=job["response_tokens"], stop_token_ids=())
        requests = requests_for(prompts, snapshot, samples=job["samples"], sampling=sampling, run_seed=0)
        return sum(group.response_tokens for group in engine.generate(requests))

    return generate


serve(prepare)
