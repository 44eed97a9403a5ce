"""This file holds Generation: the samples of one generate() call, from the queue to finished groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from time import perf_counter

import numpy as np
import torch

from miniverl.contract.request import GenerationRequest
from miniverl.engines.assemble import Decode
from miniverl.engines.cached.cache import RowCache
from miniverl.engines.cached.decoder import Decoder
from miniverl.engines.cached.sampler import Sampler
from miniverl.engines.cached.scheduler import Admission, OpenGroup, Scheduler
from miniverl.engines.cached.shapes import Shapes
from miniverl.engines.cached.slots import Slots
from miniverl.engines.cached.stops import Hit, StopWatch

COUNTERS = (
    "generated_tokens", "physical_batches", "prefills", "decode_steps", "row_steps",
    "seconds_prefill", "seconds_decode", "seconds_first_token",
)  # fmt: skip
"""What a generation counts, by the engine's names; and the rows of all passes of one token."""


class Generation:
    """Queue, slots and key/value memory of one call. ``turn`` decodes a few tokens of every row.

    ``stride``: tokens decoded between two looks at which rows have finished; changes nothing that is returned.
    ``counts`` is the engine's, by name of ``COUNTERS``. ``decode`` makes text of ids, where there are stop strings.
    """

    @torch.inference_mode()
    def __init__(
        self,
        groups: Sequence[tuple[GenerationRequest, ...]],
        *,
        decoder: Decoder,
        cache: RowCache,
        stride: int,
        counts: dict[str, float],
        decode: Decode,
    ) -> None:
        sampling = groups[0][0].sampling
        self._began = perf_counter()
        self._decoder, self._cache = decoder, cache
        self._shapes = Shapes(slots=cache.rows, length=cache.length, coarse=decoder.captures)
        self._stride, self._counts = stride, counts
        self._watch = StopWatch(sampling.stop, sampling.stop_token_ids, decode=decode) if sampling.stop else None
        self._sampler = Sampler(sampling)
        self._slots = Slots(sampling, rows=cache.rows, vocabulary=decoder.vocabulary, device=decoder.device)
        self._seen_first = False
        self._scheduler: Scheduler[RowCache] = Scheduler(groups, slots=cache.rows, prefill=self._prefill)

    @property
    def unfinished(self) -> bool:
        return self._scheduler.unfinished

    @torch.inference_mode()
    def turn(self) -> list[OpenGroup]:
        """Fills free slots, decodes, and returns the groups that are complete now."""
        self._admit(self._scheduler.refill())
        if moves := self._scheduler.close_gaps():
            self._cache.copy(self._cache, moves)
            self._slots.move(moves)
            if self._watch is not None:
                self._watch.move(moves)
        start = perf_counter()
        self._decode()
        complete = self._collect()
        now = perf_counter()
        self._counts["seconds_decode"] += now - start
        if not self._seen_first:
            self._seen_first, self._counts["seconds_first_token"] = True, now - self._began
        return complete

    def _prefill(self, prompts: Sequence[np.ndarray]) -> RowCache:
        start, passes = perf_counter(), self._decoder.passes
        prefix = self._decoder.prefill(prompts)
        self._counts["prefills"] += len(prompts)
        self._counts["physical_batches"] += self._decoder.passes - passes
        self._counts["seconds_prefill"] += perf_counter() - start
        return prefix

    def _admit(self, taken: Sequence[tuple[int, Admission[RowCache]]]) -> None:
        """Samples take their slots, each with a copy of its prompt's keys and values."""
        if not taken:
            return
        requests = [admission.request for _, admission in taken]
        self._slots.admit(
            [slot for slot, _ in taken],
            tokens=[int(request.prompt.ids[-1]) for request in requests],
            starts=[len(request.prompt.ids) - 1 for request in requests],
            seeds=[request.seed for request in requests],
        )
        if self._watch is not None:
            self._watch.start([slot for slot, _ in taken])
        for prefix, members in groupby(taken, key=lambda pair: pair[1].prefix):
            self._cache.copy(prefix, [(admission.row, slot) for slot, admission in members])

    def _decode(self) -> None:
        """A few tokens of every row; nothing comes back from the device in between."""
        rows = self._shapes.rows(self._scheduler.live)
        length = self._shapes.reach(min(self._scheduler.advance(self._stride), self._cache.length))
        for _ in range(self._stride):
            tokens, positions, uniforms = self._slots.feed(rows)
            logits = self._decoder.logits(tokens, positions, cache=self._cache, length=length)
            self._slots.record(self._sampler(logits, uniforms))
        self._counts["physical_batches"] += self._stride
        self._counts["decode_steps"] += self._stride
        self._counts["row_steps"] += self._stride * rows

    def _collect(self) -> list[OpenGroup]:
        """Takes finished samples out of their slots."""
        hits = self._hits()
        alive = self._slots.alive.tolist()
        finished = [slot for slot in self._scheduler.occupied() if slot in hits or not alive[slot]]
        if not finished:
            return []
        self._slots.end(list(hits))
        samples = self._slots.read(finished)
        for place, slot in enumerate(finished):
            if (hit := hits.get(slot)) is not None:
                samples[place] = samples[place].cut(hit.length, hit.stop)
        self._counts["generated_tokens"] += sum(len(sample.tokens) for sample in samples)
        return self._scheduler.finish(zip(finished, samples, strict=True))

    def _hits(self) -> dict[int, Hit]:
        """Rows whose text holds a stop string, by slot."""
        if self._watch is None:
            return {}
        slots = self._scheduler.occupied()
        found = ((slot, self._watch.look(slot, ids)) for slot, ids in zip(slots, self._slots.ids(slots), strict=True))
        return {slot: hit for slot, hit in found if hit is not None}
