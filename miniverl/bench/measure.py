"""This file holds the measurement of a workload: every backend in every cell, in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, cast

import numpy as np
import torch
from transformers import PreTrainedModel

from miniverl.bench.candidate import Bench, Candidate, adapter_shapes
from miniverl.bench.prompts import bench_prompts
from miniverl.bench.workload import Cell
from miniverl.contract.group import Group
from miniverl.contract.prompt import Prompt
from miniverl.errors import MiniverlError
from miniverl.models.device import device_for
from miniverl.models.logprobs import Head, ResponseRows, response_hidden
from miniverl.models.mirror import Mirror

Say = Callable[[str], None]
Raw = dict[str, Any]
"""What one backend did: cells, refreshes and phases, or the error that kept it from starting."""


def measure(bench: Bench, backends: Sequence[str], *, say: Say) -> dict[str, Raw]:
    """By backend, everything that was measured. A cell is computed by all of them before the next one begins."""
    shapes = adapter_shapes(bench.model_plan())
    raws: dict[str, Raw] = {}
    candidates: list[Candidate] = []
    for backend in backends:
        say(f"starting {backend}")
        try:
            candidates.append(Candidate(bench, backend, shapes=shapes))
            raws[backend] = {"backend": backend, "error": None, "cells": []}
        except MiniverlError as error:
            raws[backend] = {"backend": backend, "error": str(error), "cells": []}
    judge = Judge(bench, candidates)
    with ExitStack() as ends:
        for candidate in candidates:
            ends.callback(candidate.close)
        for cell in bench.workload.cells():
            _measure_cell(bench, candidates, cell, judge=judge, raws=raws, say=say)
        for candidate in candidates:
            prompts = bench_prompts(bench.model.path, count=2, tokens=min(bench.workload.prompt_tokens))
            raws[candidate.backend]["refreshes"] = candidate.refreshes(prompts)
            raws[candidate.backend]["phases"] = candidate.phases()
    return raws


def _measure_cell(
    bench: Bench, candidates: Sequence[Candidate], cell: Cell, *, judge: Judge, raws: dict[str, Raw], say: Say
) -> None:
    prompts = bench_prompts(bench.model.path, count=bench.workload.prompts, tokens=cell.prompt_tokens)
    for candidate, found in zip(candidates, in_turn(bench, candidates, cell, prompts), strict=True):
        whole = {"cell": cell.model_dump(), **found, **judge.logps(candidate, cell, prompts)}
        raws[candidate.backend]["cells"].append(whole)
        say(f"{cell!s:<32} {candidate.backend:<13} {rate(whole)}")


def in_turn(bench: Bench, candidates: Sequence[Candidate], cell: Cell, prompts: Sequence[Prompt]) -> list[Raw]:
    """One cell by every candidate, a repetition each, then the next: a machine that slows down slows all of them."""
    workload = bench.workload
    found: list[Raw] = [{"warmups": [], "repetitions": []} for _ in candidates]
    spent = [(place, one) for place, one in enumerate(candidates) if one.backend not in workload.integrated]
    for place, candidate in enumerate(candidates):
        if (points := workload.integrated.get(candidate.backend)) is not None:
            found[place]["repetitions"].append(candidate.integrated(cell, prompts, points=points))
    for number in range(workload.warmups + workload.repetitions):
        kind = "warmups" if number < workload.warmups else "repetitions"
        for place, candidate in spent:
            found[place][kind].append(candidate.repetition(cell, prompts, run_seed=0))
            if workload.stop_every is not None and candidate.backend == "hf_cached":
                found[place].setdefault("static", []).append(candidate.static(cell, prompts, run_seed=0))
    for place, candidate in spent:
        found[place]["other_seed"] = candidate.repetition(cell, prompts, run_seed=1)
    return found


class Judge:
    """Plain forward passes over whole sequences, that recorded log-probs are compared with."""

    def __init__(self, bench: Bench, candidates: Sequence[Candidate]) -> None:
        self._bench = bench
        self._mirror = Mirror(bench.model_plan(), device=device_for(bench.share))
        if candidates:
            self._mirror.load(candidates[0].policy())

    def logps(self, candidate: Candidate, cell: Cell, prompts: Sequence[Prompt]) -> Mapping[str, Any]:
        """Largest difference of the first group's log-probs; None where a backend gives none or was not asked."""
        if candidate.backend in self._bench.workload.integrated:
            return {"logp_difference": None}
        try:
            group = candidate.groups(cell, prompts[:1])[0]
        except MiniverlError as error:
            return {"logp_difference": None, "logp_error": str(error)}
        return {"logp_difference": None if group.logps is None else float(self._difference(group))}

    @torch.inference_mode()
    def _difference(self, group: Group) -> float:
        module = cast(PreTrainedModel, self._mirror.module)
        rows = [group.trajectory(index).ids for index in range(group.samples)]
        ids_BL = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.long)
        for line, row in zip(ids_BL, rows, strict=True):
            line[: len(row)] = torch.from_numpy(row.copy())
        packed = ResponseRows(ids_BL=ids_BL, prompt_lengths=(len(group.prompt_ids),) * len(rows),
                              lengths=tuple(group.lengths.tolist()))  # fmt: skip
        hidden_NH, ids_N = response_hidden(module, packed)
        logps_NV = Head(module, vocabulary=self._mirror.vocabulary).logps(hidden_NH, temperature=group.temperature)
        plain = logps_NV.gather(1, ids_N[:, None])[:, 0].cpu().numpy()
        assert group.logps is not None, "asked for"
        recorded = np.concatenate([row[:n] for row, n in zip(group.logps, group.lengths, strict=True)])
        return np.abs(plain - recorded).max()


def rate(found: Raw) -> str:
    """Of the last repetition, for the eye."""
    last = found["repetitions"][-1]
    return f"{last['tokens'] / last['seconds']:10.1f} tokens/s" if "seconds" in last else f"failed: {last['error']}"
