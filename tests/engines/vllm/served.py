"""This file holds the plans and policies of the tests on a real server, and a program that owns one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import torch

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import Sampling, requests_for
from miniverl.data.template import ChatTemplate
from miniverl.engines.cached.engine import CachedEngine
from miniverl.engines.vllm.engine import VllmEngine
from miniverl.models import adapter
from miniverl.models.mirror import Mirror
from miniverl.plan.plan import RolloutPlan, VllmPlan
from miniverl.plan.vllm import interpreter, version_of
from tests.training.conftest import SHARE, tiny

END = 1
SLOTS, LENGTH = 16, 64


def rollout_plan(folder: Path, *, quantization: str = "none", keep_warm: bool = True) -> RolloutPlan:
    python = interpreter(None)
    vllm = VllmPlan(
        python=python, version=version_of(python), keep_warm=keep_warm, enforce_eager=True, kv_cache_bytes=2**27,
        startup_timeout=400, folder=str(folder),
    )  # fmt: skip
    return RolloutPlan(
        model=tiny("tiny-student", lora=True, quantization=quantization), backend="vllm", backend_version="",
        slots=SLOTS, max_length=LENGTH, parcel_tokens=4096, deterministic=False, compile_backend=False, vllm=vllm,
        share=SHARE,
    )  # fmt: skip


class Twins:
    """A vLLM engine and hf_cached on the same student; the second judges the first."""

    def __init__(self, folder: Path, *, quantization: str = "none") -> None:
        plan = rollout_plan(folder, quantization=quantization)
        decode = ChatTemplate(Path(plan.model.path)).decode
        self.mirror = Mirror(plan.model, device=torch.device("cpu"))
        self.judge = CachedEngine(self.mirror, decode=decode, slots=SLOTS, max_length=LENGTH, deterministic=True)
        self.served = VllmEngine(plan, decode=decode)
        self.plan = plan

    def policy(self, version: int) -> Policy:
        """Version 0 is an adapter of zeros; the others change nearly every answer."""
        generator = torch.Generator().manual_seed(version)
        tensors = {
            name: (0.06 * min(version, 1) * torch.randn(value.shape, generator=generator)).numpy()
            for name, value in adapter.trainable(self.mirror.module).items()
        }
        snapshot = PolicySnapshot(
            version=version, model_id="tiny", model_revision="", tokenizer_digest="", adapter_manifest="",
            tensor_digest=tensors_digest(tensors), base_digest=self.mirror.base_digest, dtype="float32",
            quantization=self.plan.model.quantization, backend="vllm", backend_version="", profile="native",
            experiment="test",
        )  # fmt: skip
        return Policy(snapshot=snapshot, tensors=tensors)

    def synchronize(self, version: int) -> Policy:
        policy = self.policy(version)
        self.served.synchronize(policy)
        self.judge.synchronize(policy)
        return policy


def asked(policy: Policy, *, samples: int = 2, run_seed: int = 0, prompts: int = 6, **sampling: object):
    """Requests for sums."""
    made = [
        (row, Prompt(row=row, ids=np.array([3, 4, 6 + row % 10, 16, 6 + 3 * row % 10, 5]), data_source="",
                     ground_truth=None))
        for row in range(prompts)
    ]  # fmt: skip
    settings = {"temperature": 1.0, "max_new_tokens": 16, "stop_token_ids": (END,), **sampling}
    return requests_for(made, policy.snapshot, samples=samples, sampling=Sampling(**settings), run_seed=run_seed)


def answers(engine, requests):
    return {group.id: group for group in engine.generate(requests)}


def tokens(groups):
    return {
        name: [group.trajectory(index).response_ids.tolist() for index in range(group.samples)]
        for name, group in groups.items()
    }


def main(folder: str) -> None:
    """Owns a server of a four-bit student, says what it has, and waits to be killed."""
    twins = Twins(Path(folder), quantization="nf4")
    policy = twins.synchronize(1)
    requests = asked(policy, temperature=0.0, samples=1)
    equal = tokens(answers(twins.served, requests)) == tokens(answers(twins.judge, requests))
    print(json.dumps({"equal": equal, "processes": twins.served.processes()}), flush=True)
    list(twins.served.generate(asked(policy, prompts=400, stop_token_ids=(), max_new_tokens=50)))
    sys.exit("nobody killed it")


if __name__ == "__main__":
    main(sys.argv[1])
