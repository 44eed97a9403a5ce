"""This file holds CachedEngine: continuous batching over slots with static key/value memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from time import perf_counter

import numpy as np
import torch

from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest, Sampling
from miniverl.engines.assemble import Decode, assemble
from miniverl.engines.base import Capabilities, Lifecycle, PolicyModel
from miniverl.engines.cached.cache import RowCache, aligned
from miniverl.engines.cached.decoder import Decoder
from miniverl.engines.cached.sampler import Sampler
from miniverl.engines.cached.scheduler import FEWEST_ROWS, Admission, OpenGroup, Scheduler
from miniverl.engines.cached.slots import Slots
from miniverl.engines.intake import whole_groups


class CachedEngine(Lifecycle):
    """Samples many rows at once from one policy.

    ``slots``: rows decoded at once (4 at least: fewer cost as much). ``max_length``: the most tokens of a prompt and
    its response together.
    """

    def __init__(
        self, model: PolicyModel, *, decode: Decode, slots: int, max_length: int, deterministic: bool
    ) -> None:
        super().__init__()
        self.capabilities = Capabilities(
            logps=True, behaviour_logps=True, stop_strings=False, deterministic=deterministic
        )
        self._model, self._decode = model, decode
        self._slots, self._max_length = max(slots, FEWEST_ROWS), max_length
        self._device = next(model.module.parameters()).device
        # Reading a flag back costs nothing on a CPU and a pause of the pipeline elsewhere.
        self._stride = 1 if self._device.type == "cpu" else 8
        self._decoder: Decoder | None = None
        self._cache: RowCache | None = None
        self._counts = dict.fromkeys(
            ("generated_tokens", "physical_batches", "prefills", "decode_steps", "row_steps"), 0
        )
        self._seconds = dict.fromkeys(("seconds_prefill", "seconds_decode"), 0.0)

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[Group]:
        snapshot, generation = self._accept(requests)
        groups = whole_groups(requests, max_length=self._max_length)
        return self._groups(groups, snapshot, generation)

    def metrics(self) -> Mapping[str, float]:
        counts = dict(self._counts)
        occupancy = counts["generated_tokens"] / max(counts.pop("row_steps"), 1)
        return {**counts, **self._seconds, "slot_occupancy": occupancy}

    def _groups(
        self, groups: list[tuple[GenerationRequest, ...]], snapshot: PolicySnapshot, generation: object
    ) -> Iterator[Group]:
        if not groups:
            return
        sampling = groups[0][0].sampling
        slots = self._new_slots(sampling)
        sampler = Sampler(sampling)
        scheduler = Scheduler(groups, slots=self._slots, prefill=self._prefill)
        while scheduler.unfinished:
            self._refuse_unless_serving(generation)
            self._admit(scheduler.refill(), slots)
            self._close_gaps(scheduler.close_gaps(), slots)
            start = perf_counter()
            self._decode_stride(scheduler, slots, sampler)
            complete = self._collect(scheduler, slots)
            self._seconds["seconds_decode"] += perf_counter() - start
            for group in complete:
                yield assemble(group.requests, group.in_order(), snapshot=snapshot, decode=self._decode)

    @torch.inference_mode()
    def _new_slots(self, sampling: Sampling) -> Slots:
        if self._cache is None:
            self._cache = self._decoder.cache(rows=self._slots, length=self._max_length)
        return Slots(sampling, rows=self._slots, vocabulary=self._model.vocabulary, device=self._device)

    @torch.inference_mode()
    def _prefill(self, prompts: Sequence[np.ndarray]) -> RowCache:
        start = perf_counter()
        prefix = self._decoder.prefill(prompts)
        self._counts["prefills"] += len(prompts)
        self._seconds["seconds_prefill"] += perf_counter() - start
        return prefix

    @torch.inference_mode()
    def _admit(self, taken: Sequence[tuple[int, Admission[RowCache]]], slots: Slots) -> None:
        if not taken:
            return
        requests = [admission.request for _, admission in taken]
        slots.admit(
            [slot for slot, _ in taken],
            tokens=[int(request.prompt.ids[-1]) for request in requests],
            starts=[len(request.prompt.ids) - 1 for request in requests],
            seeds=[request.seed for request in requests],
        )
        for prefix, members in groupby(taken, key=lambda pair: pair[1].prefix):
            self._cache.copy(prefix, [(admission.row, slot) for slot, admission in members])

    @torch.inference_mode()
    def _close_gaps(self, moves: Sequence[tuple[int, int]], slots: Slots) -> None:
        if moves:
            self._cache.copy(self._cache, moves)
            slots.move(moves)

    @torch.inference_mode()
    def _decode_stride(self, scheduler: Scheduler[RowCache], slots: Slots, sampler: Sampler) -> None:
        """Decodes a few tokens of every row; nothing comes back from the device in between."""
        rows = scheduler.rows
        length = min(aligned(scheduler.advance(self._stride)), self._cache.length)
        for _ in range(self._stride):
            tokens, positions, uniforms = slots.feed(rows)
            logits = self._decoder.logits(tokens, positions, cache=self._cache, length=length)
            slots.record(sampler(logits, uniforms))
        self._counts["decode_steps"] += self._stride
        self._counts["row_steps"] += self._stride * rows

    @torch.inference_mode()
    def _collect(self, scheduler: Scheduler[RowCache], slots: Slots) -> list[OpenGroup]:
        """The groups that the last tokens completed."""
        alive = slots.alive.tolist()
        finished = [slot for slot in scheduler.occupied() if not alive[slot]]
        if not finished:
            return []
        samples = slots.read(finished)
        self._counts["generated_tokens"] += sum(len(sample.tokens) for sample in samples)
        return scheduler.finish(zip(finished, samples, strict=True))

    def _load(self, policy: Policy) -> None:
        self._model.load(policy)
        self._decoder = Decoder(self._model.module, vocabulary=self._model.vocabulary)

    def _release(self) -> None:
        self._decoder = self._cache = None
        self._model.module.to("cpu")

    def _restore(self) -> None:
        self._model.module.to(self._device)
