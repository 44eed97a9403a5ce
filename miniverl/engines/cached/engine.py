"""This file holds CachedEngine: continuous batching over slots with static key/value memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter

import torch

from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest
from miniverl.engines.assemble import Decode, assemble
from miniverl.engines.base import Capabilities, Lifecycle, PolicyModel
from miniverl.engines.cached.cache import RowCache
from miniverl.engines.cached.decoder import Decoder
from miniverl.engines.cached.generation import COUNTERS, Generation
from miniverl.engines.cached.scheduler import OpenGroup
from miniverl.engines.cached.shapes import FEWEST_ROWS
from miniverl.engines.intake import whole_groups
from miniverl.errors import ConfigError, EngineError
from miniverl.models.device import is_out_of_memory, peak_bytes

Requests = tuple[GenerationRequest, ...]
"""Of one group."""


class CachedEngine(Lifecycle):
    """Samples many rows at once from one policy.

    ``slots``: rows decoded at once (4 at least: fewer cost as much); halved when memory does not suffice.
    ``max_length``: the most tokens of a prompt and its response together. ``deterministic``: a row's bits never depend
    on who shares its batch, or synchronize() raises ConfigError. ``compiled``: the decode step is compiled before the
    first token.
    """

    def __init__(
        self,
        model: PolicyModel,
        *,
        decode: Decode,
        slots: int,
        max_length: int,
        deterministic: bool,
        compiled: bool = False,
    ) -> None:
        super().__init__()
        self.capabilities = Capabilities(
            logps=True, behaviour_logps=True, stop_strings=True, deterministic=deterministic
        )
        self._model, self._decode, self._compiles = model, decode, compiled
        self._slots, self._max_length = max(slots, FEWEST_ROWS), max_length
        self._device = next(model.module.parameters()).device
        # Reading a flag back costs nothing on a CPU and a pause of the pipeline elsewhere.
        self._stride = 1 if self._device.type == "cpu" else 8
        self._decoder: Decoder | None = None
        self._cache: RowCache | None = None
        self._downshifts, self._seconds_compile = 0, 0.0
        self._counts: dict[str, float] = dict.fromkeys(COUNTERS, 0)

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[Group]:
        snapshot, serving = self._accept(requests)
        groups = whole_groups(requests, max_length=self._max_length)
        return self._groups(groups, snapshot, serving)

    def metrics(self) -> Mapping[str, float]:
        counts = dict(self._counts)
        occupancy = counts["generated_tokens"] / max(counts.pop("row_steps"), 1)
        return {
            **super().metrics(),
            **counts,
            "slot_occupancy": occupancy,
            "slots": self._slots,
            "downshifts": self._downshifts,
            "compiled": float(self._decoder is not None and self._decoder.compiled),
            "seconds_compile": self._seconds_compile,
            "peak_bytes": peak_bytes(self._device),
        }

    def adapter_effect(self) -> float | None:
        return self._model.adapter_effect()

    def _groups(self, groups: Sequence[Requests], snapshot: PolicySnapshot, serving: object) -> Iterator[Group]:
        waiting = {group[0].group_id: group for group in groups}
        generation = None
        while waiting:
            self._refuse_unless_serving(serving)
            generation = generation or self._begin(list(waiting.values()))
            complete = self._turn(generation) if generation else None
            if complete is None:
                generation = None
                self._halve_slots()
                continue
            for group in complete:
                del waiting[group.requests[0].group_id]
                yield assemble(group.requests, group.in_order(), snapshot=snapshot, decode=self._decode)

    def _begin(self, groups: Sequence[Requests]) -> Generation | None:
        """A generation of these groups; None: memory does not suffice."""
        try:
            return self._generation(groups)
        except RuntimeError as error:
            _raise_unless_out_of_memory(error)
            return None

    def _turn(self, generation: Generation) -> list[OpenGroup] | None:
        """The groups that are complete now; None: memory does not suffice. Unfinished ones are drawn again, alike."""
        try:
            return generation.turn()
        except RuntimeError as error:
            _raise_unless_out_of_memory(error)
            return None

    @torch.inference_mode()
    def _generation(self, groups: Sequence[Requests]) -> Generation:
        if self._decoder is None:
            self._decoder = Decoder(self._model.module, vocabulary=self._model.vocabulary)
        if self._cache is None:
            self._cache = self._decoder.cache(rows=self._slots, length=self._max_length)
            self._compile(self._decoder, self._cache)
        return Generation(
            groups,
            decoder=self._decoder,
            cache=self._cache,
            stride=self._stride,
            counts=self._counts,
            decode=self._decode,
        )

    def _compile(self, decoder: Decoder, cache: RowCache) -> None:
        if self._compiles:
            began = perf_counter()
            decoder.compile(cache)
            self._seconds_compile += perf_counter() - began

    def _halve_slots(self) -> None:
        """For good: memory that was short once is short again."""
        if self._slots == FEWEST_ROWS:
            raise EngineError(
                "rollout slots",
                value=self._slots,
                problem=f"memory does not suffice for {self._slots} rows of {self._max_length} tokens",
                fix="lower rollout.max_new_tokens or data.max_prompt_length, or give the rollout more memory",
            )
        self._cache = None
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        self._slots = max(self._slots // 2, FEWEST_ROWS)
        self._downshifts += 1

    def _load(self, policy: Policy) -> None:
        self._refuse_many_threads()
        self._model.load(policy)
        if self._decoder is not None:
            self._decoder.refresh()

    def _refuse_many_threads(self) -> None:
        """Two threads split a product by its number of rows, and so round a row by who shares its batch."""
        threads = torch.get_num_threads()
        if self.capabilities.deterministic and self._device.type == "cpu" and threads > 1:
            raise ConfigError(
                "rollout threads",
                value=threads,
                problem="deterministic sampling on a CPU needs one torch thread",
                fix="set placement.rollout.threads: 1, or rollout.deterministic: false",
            )

    def _drop(self) -> None:
        self._decoder = self._cache = None

    def _release(self) -> None:
        self._model.module.to("cpu")

    def _restore(self) -> None:
        self._model.module.to(self._device)


def _raise_unless_out_of_memory(error: RuntimeError) -> None:
    if not is_out_of_memory(error):
        raise error
