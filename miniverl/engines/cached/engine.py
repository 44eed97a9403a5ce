"""This file holds CachedEngine: continuous batching over slots with static key/value memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch

from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest
from miniverl.engines.assemble import Decode, assemble
from miniverl.engines.base import Capabilities, Lifecycle, PolicyModel
from miniverl.engines.cached.cache import RowCache
from miniverl.engines.cached.decoder import Decoder
from miniverl.engines.cached.generation import COUNTERS, Generation
from miniverl.engines.cached.scheduler import FEWEST_ROWS
from miniverl.engines.intake import whole_groups
from miniverl.errors import ConfigError


class CachedEngine(Lifecycle):
    """Samples many rows at once from one policy.

    ``slots``: rows decoded at once (4 at least: fewer cost as much). ``max_length``: the most tokens of a prompt and
    its response together. ``deterministic``: a row's bits never depend on who shares its batch, or synchronize()
    raises ConfigError.
    """

    def __init__(self, model: PolicyModel, *, decode: Decode, slots: int, max_length: int, deterministic: bool) -> None:
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
        self._counts: dict[str, float] = dict.fromkeys(COUNTERS, 0)

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[Group]:
        snapshot, serving = self._accept(requests)
        groups = whole_groups(requests, max_length=self._max_length)
        return self._groups(self._generation(groups), snapshot, serving) if groups else iter(())

    def metrics(self) -> Mapping[str, float]:
        counts = dict(self._counts)
        occupancy = counts["generated_tokens"] / max(counts.pop("row_steps"), 1)
        return {**counts, "slot_occupancy": occupancy}

    @torch.inference_mode()
    def _generation(self, groups: list[tuple[GenerationRequest, ...]]) -> Generation:
        if self._decoder is None:
            self._decoder = Decoder(self._model.module, vocabulary=self._model.vocabulary)
        if self._cache is None:
            self._cache = self._decoder.cache(rows=self._slots, length=self._max_length)
        return Generation(groups, decoder=self._decoder, cache=self._cache, stride=self._stride, counts=self._counts)

    def _groups(self, generation: Generation, snapshot: PolicySnapshot, serving: object) -> Iterator[Group]:
        while generation.unfinished:
            self._refuse_unless_serving(serving)
            for group in generation.turn():
                yield assemble(group.requests, group.in_order(), snapshot=snapshot, decode=self._decode)

    def _load(self, policy: Policy) -> None:
        self._refuse_many_threads()
        self._decoder = None  # it may hold a float32 copy of the LM head
        self._model.load(policy)

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
