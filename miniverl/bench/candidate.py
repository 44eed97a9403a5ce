"""This file holds Candidate: one backend on one workload, asked and timed through the protocol all engines share."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from miniverl.bench.workload import Cell, Workload
from miniverl.contract.canonical import tensors_digest
from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import GenerationRequest, Sampling, requests_for
from miniverl.errors import MiniverlError
from miniverl.models import adapter
from miniverl.models.mirror import Mirror
from miniverl.plan.identity import ModelFolder
from miniverl.plan.plan import DeviceShare, LoraPlan, ModelPlan, RolloutPlan, VllmPlan
from miniverl.plan.vllm import bytes_per_token, interpreter, version_of
from miniverl.training.rollout import BACKENDS

SCALE = 0.06
"""Of the adapter's random values: large enough to change tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all candidates of a benchmark share."""

    workload: Workload
    model: ModelFolder
    share: DeviceShare
    compile_backend: bool
    scratch: Path
    """Where a server keeps its files."""

    def model_plan(self) -> ModelPlan:
        lora = LoraPlan(r=self.workload.lora_rank, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")
        return ModelPlan(
            id=self.model.id, path=str(self.model.path), revision=self.model.revision,
            tokenizer_digest=self.model.tokenizer_digest, vocabulary=min(self.model.vocabulary, self.model.head),
            dtype=self.workload.dtype, quantization="none", lora=lora,
        )  # fmt: skip

    def rollout_plan(self, backend: str) -> RolloutPlan:
        workload = self.workload
        return RolloutPlan(
            model=self.model_plan(), backend=backend, backend_version="", slots=workload.most_rows,
            max_length=workload.longest, parcel_tokens=2**30,
            deterministic=self.share.gpu == 0 and self.share.threads == 1,
            compile_backend=self.compile_backend and backend == "hf_cached",
            vllm=self._vllm() if backend == "vllm" else None, share=self.share,
        )  # fmt: skip

    def policies(self, shapes: dict[str, tuple[int, ...]], backend: str, count: int) -> list[Policy]:
        """Policies of the same base with different adapters, equal for all backends."""
        return [self._policy(shapes, backend, version) for version in range(1, count + 1)]

    def _policy(self, shapes: dict[str, tuple[int, ...]], backend: str, version: int) -> Policy:
        generator = np.random.default_rng(version)
        tensors = {
            name: (SCALE * generator.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()
        }
        snapshot = PolicySnapshot(
            version=version, model_id=self.model.id, model_revision=self.model.revision,
            tokenizer_digest=self.model.tokenizer_digest, adapter_manifest="bench",
            tensor_digest=tensors_digest(tensors), base_digest="", dtype=self.workload.dtype, quantization="none",
            backend=backend, backend_version="", profile="bench", experiment=self.workload.name,
        )  # fmt: skip
        return Policy(snapshot=snapshot, tensors=tensors)

    def _vllm(self) -> VllmPlan:
        python = interpreter(None)
        per_token = bytes_per_token(self.model.config, half=self.workload.dtype == "bfloat16")
        return VllmPlan(
            python=python, version=version_of(python), keep_warm=True, enforce_eager=not self.compile_backend,
            kv_cache_bytes=max(2 * self.workload.most_rows * self.workload.longest * per_token, 2**28),
            startup_timeout=900, folder=str(self.scratch / "vllm"),
        )  # fmt: skip


def adapter_shapes(plan: ModelPlan) -> dict[str, tuple[int, ...]]:
    """Of the trainable tensors, by name; from a model without memory."""
    module = Mirror(plan, device=torch.device("cpu")).module
    return {name: tuple(value.shape) for name, value in adapter.trainable(module).items()}


class Candidate:
    """Started at birth; a failure becomes part of what is recorded, never the end of the benchmark."""

    def __init__(self, bench: Bench, backend: str, *, shapes: dict[str, tuple[int, ...]]) -> None:
        self.backend, self._bench = backend, bench
        self._policies = bench.policies(shapes, backend, bench.workload.refreshes)
        began = time.perf_counter()
        self._engine = BACKENDS[backend](bench.rollout_plan(backend))
        self.seconds_construction = time.perf_counter() - began
        self._engine.synchronize(self._policies[0])

    def repetition(self, cell: Cell, prompts: Sequence[Prompt], *, run_seed: int) -> dict[str, Any]:
        """One generation of a cell: seconds, tokens, what they were, and what the engine counted on the way."""
        requests = self._requests(cell, prompts, run_seed=run_seed)
        before, began = self._engine.metrics(), time.perf_counter()
        try:
            groups = sorted(self._engine.generate(requests), key=lambda group: group.cursor)
        except MiniverlError as error:
            return {"error": str(error)}
        seconds, after = time.perf_counter() - began, self._engine.metrics()
        grown = {
            name: after[name] - before.get(name, 0.0) for name in ("seconds_prefill", "seconds_decode") if name in after
        }
        return {
            "seconds": seconds,
            "tokens": sum(group.response_tokens for group in groups),
            "digest": token_digest(groups),
            "distinct": min(len({row.tobytes() for row in group.token_ids}) for group in groups),
            **grown,
            "seconds_first_token": after.get("seconds_first_token"),
        }

    def static(self, cell: Cell, prompts: Sequence[Prompt], *, run_seed: int) -> dict[str, Any]:
        """The same requests, one batch of all slots at a time: the next begins when the longest row has ended."""
        requests = self._requests(cell, prompts, run_seed=run_seed)
        size = max(self._bench.workload.most_rows // cell.samples, 1) * cell.samples
        began = time.perf_counter()
        groups = [group for first in range(0, len(requests), size)
                  for group in self._engine.generate(requests[first : first + size])]  # fmt: skip
        seconds = time.perf_counter() - began
        groups.sort(key=lambda group: group.cursor)
        return {"seconds": seconds, "digest": token_digest(groups)}

    def integrated(self, cell: Cell, prompts: Sequence[Prompt], *, points: int) -> dict[str, Any]:
        """Seconds of a backend that computes row by row and the prefix anew for every token: timed at some lengths."""
        lengths = np.unique(
            np.linspace(cell.prompt_tokens, cell.prompt_tokens + cell.response_tokens - 1, points).astype(int)
        )
        ids = np.concatenate([prompt.ids for prompt in prompts for _ in range(1 + lengths[-1] // cell.prompt_tokens)])
        timed = []
        for length in lengths:
            prompt = Prompt(row=0, ids=ids[:length], data_source="bench", ground_truth=None)
            one = Cell(prompt_tokens=int(length), response_tokens=1, samples=1, sampling=cell.sampling)
            timed.append(min(self.repetition(one, [prompt], run_seed=0)["seconds"] for _ in range(2)))
        places = np.arange(cell.prompt_tokens, cell.prompt_tokens + cell.response_tokens)
        rows = len(prompts) * cell.samples
        seconds = float(np.interp(places, lengths, timed).sum()) * rows
        return {"seconds": seconds, "tokens": rows * cell.response_tokens, "integrated_over": lengths.tolist()}

    def refreshes(self, prompts: Sequence[Prompt]) -> list[dict[str, Any]]:
        """Takes up every policy in turn: seconds, memory, identity and the greedy tokens that follow."""
        found = []
        for policy in [*self._policies[1:], self._policies[0]]:
            before, began = self._engine.metrics(), time.perf_counter()
            self._engine.synchronize(policy)
            seconds = time.perf_counter() - began
            sampling = Sampling(
                temperature=0.0, max_new_tokens=min(self._bench.workload.response_tokens), stop_token_ids=()
            )
            requests = requests_for(list(enumerate(prompts)), policy.snapshot, samples=1, sampling=sampling, run_seed=0)
            groups = sorted(self._engine.generate(requests), key=lambda group: group.cursor)
            found.append({"identity": policy.snapshot.digest, "seconds": seconds, "digest": token_digest(groups),
                          "syncs": self._engine.metrics()["syncs"] - before["syncs"],
                          "peak_bytes": self._engine.metrics().get("peak_bytes")})  # fmt: skip
        return found

    def groups(self, cell: Cell, prompts: Sequence[Prompt]) -> list[Group]:
        return sorted(self._engine.generate(self._requests(cell, prompts, run_seed=0)), key=lambda group: group.cursor)

    def policy(self) -> Policy:
        """The one that every cell is drawn from."""
        return self._policies[0]

    def phases(self) -> dict[str, float | None]:
        """Start-up and what the engine counted in all; None: not measured."""
        counted = self._engine.metrics()
        names = ("seconds_cold_start", "seconds_compile", "seconds_sync", "slot_occupancy", "downshifts", "peak_bytes",
                 "compiled", "server_starts", "slots")  # fmt: skip
        return {"seconds_construction": self.seconds_construction, **{name: counted.get(name) for name in names}}

    def close(self) -> None:
        self._engine.close()

    def _requests(self, cell: Cell, prompts: Sequence[Prompt], *, run_seed: int) -> tuple[GenerationRequest, ...]:
        vocabulary = self._bench.model_plan().vocabulary
        return requests_for(
            list(enumerate(prompts)), self._policies[0].snapshot, samples=cell.samples,
            sampling=self._bench.workload.sampling_of(cell, vocabulary=vocabulary), run_seed=run_seed,
        )  # fmt: skip


def token_digest(groups: Sequence[Group]) -> str:
    """SHA-256 over the tokens of all samples, in order."""
    digest = hashlib.sha256()
    for group in groups:
        for index in range(group.samples):
            digest.update(group.trajectory(index).response_ids.tobytes() + b";")
    return digest.hexdigest()
