"""hf_cached on a GPU: the 24 cells, log-probs in bfloat16, memory. Needs no Ray and no bitsandbytes.

    python scripts/gpu_check.py --out FILE.json [--model FOLDER] [--seconds 220] [--dry]

Without ``--model`` the weights are random, in the shape of Qwen3-0.6B, and the file says so. Cells for which the time
did not suffice stay empty. ``--dry`` runs everything on the CPU at a tiny size, to see that it works.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.prompt import Prompt
from miniverl.contract.request import Sampling, requests_for
from miniverl.engines.cached.engine import CachedEngine
from miniverl.models.frozen import FrozenModel
from miniverl.models.logprobs import Head, ResponseRows, response_hidden

PROMPTS, REPETITIONS = 4, 3
CELLS = list(product((128, 512), (64, 256, 512), (1, 4), ("greedy", "stochastic")))
"""Prompt tokens, response tokens, samples, sampling: the workload rollout-24."""
SAMPLING = {"greedy": {"temperature": 0.0}, "stochastic": {"temperature": 0.8, "top_p": 0.95, "top_k": 50}}
SHAPE = {
    "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
    "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40_960,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0}, "tie_word_embeddings": True,
}  # fmt: skip
"""Of Qwen3-0.6B."""
TINY = {**SHAPE, "vocab_size": 128, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}  # fmt: skip


def load(options: argparse.Namespace) -> PreTrainedModel:
    """On the device, in the dtype that is measured."""
    device, dtype = ("cpu", torch.float32) if options.dry else ("cuda", torch.bfloat16)
    if options.model is not None:
        return AutoModelForCausalLM.from_pretrained(options.model, dtype=dtype, attn_implementation="sdpa").to(device)
    torch.manual_seed(0)
    with torch.device(device):
        return Qwen3ForCausalLM(Qwen3Config(**(TINY if options.dry else SHAPE))).to(dtype)


class Check:
    """One engine on one model, and what is asked of it."""

    def __init__(self, module: PreTrainedModel, *, cells: list[tuple[int, int, int, str]], compiled: bool) -> None:
        self._module = module.eval().requires_grad_(False)
        self._vocabulary = module.config.vocab_size
        self.cells = cells
        self._engine = CachedEngine(
            FrozenModel(module, vocabulary=self._vocabulary), decode=lambda ids: "",
            slots=PROMPTS * max(samples for _, _, samples, _ in cells),
            max_length=max(prompt + response for prompt, response, _, _ in cells), deterministic=False,
            compiled=compiled,
        )  # fmt: skip
        names = ("model_id", "model_revision", "tokenizer_digest", "adapter_manifest", "base_digest", "dtype",
                 "quantization", "backend", "backend_version", "profile", "experiment")  # fmt: skip
        self._snapshot = PolicySnapshot(version=0, tensor_digest=tensors_digest({}), **dict.fromkeys(names, ""))
        self._engine.synchronize(Policy(snapshot=self._snapshot, tensors={}))

    def groups(self, cell: tuple[int, int, int, str], *, run_seed: int = 0) -> list[Group]:
        prompt_tokens, response_tokens, samples, mode = cell
        random = np.random.default_rng(prompt_tokens)
        prompts = [
            (row, Prompt(row=row, ids=random.integers(0, self._vocabulary, prompt_tokens), data_source="",
                         ground_truth=None))
            for row in range(PROMPTS)
        ]  # fmt: skip
        sampling = Sampling(**SAMPLING[mode], max_new_tokens=response_tokens, stop_token_ids=())
        requests = requests_for(prompts, self._snapshot, samples=samples, sampling=sampling, run_seed=run_seed)
        return sorted(self._engine.generate(requests), key=lambda group: group.cursor)

    def cell(self, cell: tuple[int, int, int, str]) -> dict[str, Any]:
        """Rates of the repetitions after one warm-up, and whether the tokens are what they should be."""
        first, rates = self.groups(cell), []
        for _ in range(REPETITIONS):
            began = time.perf_counter()
            again = self.groups(cell)
            rates.append(sum(group.response_tokens for group in again) / (time.perf_counter() - began))
        equal = all(one.digest == other.digest for one, other in zip(first, again, strict=True))
        differ = all(len({row.tobytes() for row in group.token_ids}) == group.samples for group in first)
        return {"tokens_per_second": statistics.median(rates), "repetitions": rates, "repeats_equal": equal,
                "samples_differ": differ if cell[3] == "stochastic" else None}  # fmt: skip

    @torch.inference_mode()
    def conformance(self) -> dict[str, float]:
        """Sampled tokens at temperature 1, recorded log-probs against full forward passes, and the noise of those."""
        prompt_tokens, response_tokens = self.cells[0][0], min(64, self.cells[0][1])
        SAMPLING["probe"] = {"temperature": 1.0}
        groups = self.groups((prompt_tokens, response_tokens, 4, "probe"))
        alone = torch.cat([self._scored([row]) for row in self._rows(groups)])
        packed = self._scored(list(self._rows(groups)))
        recorded = torch.from_numpy(np.concatenate([group.logps.reshape(-1) for group in groups]))
        against, floor = (recorded - packed).abs(), (alone - packed).abs()
        return {"tokens": len(recorded), "max": float(against.max()), "mean": float(against.mean()),
                "floor_max": float(floor.max()), "floor_mean": float(floor.mean())}  # fmt: skip

    def _rows(self, groups: list[Group]) -> Iterator[tuple[np.ndarray, int]]:
        for group in groups:
            for index in range(group.samples):
                yield group.trajectory(index).ids, len(group.prompt_ids)

    def _scored(self, rows: list[tuple[np.ndarray, int]]) -> torch.Tensor:
        ids = torch.from_numpy(np.stack([ids for ids, _ in rows])).long()
        lengths = tuple(len(row) - prompt for row, prompt in rows)
        packed = ResponseRows(ids_BL=ids, prompt_lengths=tuple(prompt for _, prompt in rows), lengths=lengths)
        hidden, tokens = response_hidden(self._module, packed)
        head = Head(self._module, vocabulary=self._vocabulary)
        return head.logps(hidden, temperature=1.0).gather(1, tokens[:, None])[:, 0].cpu()

    def metrics(self) -> dict[str, float]:
        return dict(self._engine.metrics())


def facts(options: argparse.Namespace) -> dict[str, Any]:
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    gpu = None if options.dry else torch.cuda.get_device_properties(0)
    return {
        "weights": str(options.model) if options.model else "random, in the shape of Qwen3-0.6B",
        "dry": options.dry,
        "commit": commit.stdout.strip() or None,
        "torch": torch.__version__, "transformers": transformers.__version__,
        "gpu": gpu.name if gpu else None, "gpu_gib": gpu.total_memory / 2**30 if gpu else None,
    }  # fmt: skip


def main() -> None:
    began = time.monotonic()
    parser = argparse.ArgumentParser(description="hf_cached on a GPU, with evidence.")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="a folder of weights; random ones when not given")
    parser.add_argument("--seconds", type=float, default=220.0, help="after which no other cell is begun")
    parser.add_argument("--dry", action="store_true", help="on the CPU, at a tiny size")
    parser.add_argument("--eager", action="store_true", help="without compilation")
    options = parser.parse_args()
    if not options.dry and not torch.cuda.is_available():
        parser.exit(1, "gpu_check: this machine has no CUDA device; nothing was measured\n")
    cells = [(8, 4, n, mode) for n, mode in product((1, 4), SAMPLING)] if options.dry else CELLS
    check = Check(load(options), cells=list(cells), compiled=not options.eager)
    found: dict[str, Any] = {**facts(options), "conformance": check.conformance(), "cells": []}
    for cell in check.cells:
        measured = check.cell(cell) if time.monotonic() - began < options.seconds else None
        found["cells"].append({"cell": cell, "measured": measured})
        print(cell, measured and f"{measured['tokens_per_second']:.0f} tokens/s", flush=True)
    found |= {"engine": check.metrics(), "seconds": time.monotonic() - began}
    options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
