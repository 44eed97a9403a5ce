"""This file holds VllmEngine: a managed vLLM server as a rollout engine, warm for the whole run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest
from miniverl.engines.assemble import Decode, Sample, assemble
from miniverl.engines.base import Capabilities, Lifecycle, State
from miniverl.engines.intake import whole_groups
from miniverl.engines.vllm.client import Client
from miniverl.engines.vllm.server import BASE, Server, ServerPlan, start
from miniverl.engines.vllm.weights import served_base
from miniverl.errors import EngineError, IdentityError
from miniverl.models.adapter import write_peft
from miniverl.plan.plan import LoraPlan, RolloutPlan, VllmPlan

PROBE = 16
"""Ids of the text that tells whether an adapter does anything."""


class VllmEngine(Lifecycle):
    """Starts its server with the first policy and gives it each later one as an adapter.

    An adapter's name is its policy's version and digest; only one is loaded at a time. A policy that could not be taken
    up ends the server: nothing may answer under a name it does not deserve.
    """

    capabilities = Capabilities(logps=True, behaviour_logps=True, stop_strings=True, deterministic=False)

    def __init__(self, plan: RolloutPlan, *, decode: Decode) -> None:
        super().__init__()
        assert plan.vllm is not None and plan.model.lora is not None, "plan/vllm.py refuses anything else"
        self._plan, self._vllm, self._lora = plan, plan.vllm, plan.model.lora
        self._decode = decode
        self._folder = Path(plan.vllm.folder)
        self._base, self._base_digest = served_base(plan.model, self._folder / BASE)
        self._server: Server | None = None
        self._adapter: str | None = None
        self._counts = {"generated_tokens": 0, "server_starts": 0, "seconds_cold_start": 0.0, "seconds_generate": 0.0}

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[Group]:
        snapshot, serving = self._accept(requests)
        return self._groups(whole_groups(requests, max_length=self._plan.max_length), snapshot, serving)

    def metrics(self) -> Mapping[str, float]:
        peak = sum(map(_peak_rss, self.processes()))
        return {
            **super().metrics(),
            **self._counts,
            "slots": self._plan.slots,
            **({"peak_bytes": peak} if peak else {}),
        }

    def processes(self) -> list[int]:
        """Of the server; none while there is no server."""
        return self._server.processes() if self._server else []

    def adapter_effect(self) -> float | None:
        """Largest change of a log-prob that the adapter in force makes on a short text."""
        ids = [place % self._plan.model.vocabulary for place in range(PROBE)]
        with_it = self._client().prompt_logps(ids, model=self._served_name())
        without = self._client().prompt_logps(ids, model=BASE)
        return float(np.abs(with_it - without).max())

    def _groups(
        self, groups: list[tuple[GenerationRequest, ...]], snapshot: PolicySnapshot, serving: object
    ) -> Iterator[Group]:
        requests = [request for group in groups for request in group]
        owner = [index for index, group in enumerate(groups) for _ in group]
        samples: list[dict[int, Sample]] = [{} for _ in groups]
        began = perf_counter()
        for place, sample in self._answers(requests) if requests else ():
            self._refuse_unless_serving(serving)
            group, finished = groups[owner[place]], samples[owner[place]]
            finished[requests[place].sample_index] = sample
            self._counts["generated_tokens"] += len(sample.tokens)
            if len(finished) == len(group):
                in_order = [finished[index] for index in range(len(group))]
                yield assemble(group, in_order, snapshot=snapshot, decode=self._decode)
        self._counts["seconds_generate"] += perf_counter() - began
        if not self._vllm.keep_warm:
            self._end_server()

    def _answers(self, requests: Sequence[GenerationRequest]) -> Iterator[tuple[int, Sample]]:
        """A server that fails is ended."""
        try:
            yield from self._client().samples(requests, model=self._served_name())
        except EngineError:
            self._end_server()
            raise

    def _end_server(self) -> None:
        """The next policy starts another."""
        if self.state is State.SYNCHRONIZED:
            self.quiesce()
        self._drop()

    def _load(self, policy: Policy) -> None:
        policy.verify()
        if policy.snapshot.base_digest != self._base_digest:
            raise IdentityError(
                "policy.base_digest",
                value=policy.snapshot.base_digest[:12],
                problem=f"the server has the dequantized base {self._base_digest[:12]}",
                fix="load the same model files with the same bitsandbytes on both sides",
            )
        try:
            if self._server is None or not self._server.alive:
                self._restart()
            self._take_up(policy)
        except EngineError:
            self._drop()
            raise

    def _restart(self) -> None:
        self._drop()
        began = perf_counter()
        self._server = start(server_plan(self._plan, self._vllm, self._lora, self._base))
        self._counts["server_starts"] += 1
        self._counts["seconds_cold_start"] += perf_counter() - began

    def _take_up(self, policy: Policy) -> None:
        name = f"v{policy.snapshot.version:08d}-{policy.snapshot.digest[:12]}"
        folder = self._folder / "adapters" / name
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.mkdir(parents=True)
        write_peft(policy.tensors, self._plan.model, self._lora, folder)
        if self._adapter is not None:
            self._client().unload_adapter(self._adapter)
            self._adapter = None
        self._client().load_adapter(name, folder)
        self._adapter = name

    def _client(self) -> Client:
        assert self._server is not None, "SYNCHRONIZED has a server"
        return Client(self._server)

    def _served_name(self) -> str:
        assert self._adapter is not None, "SYNCHRONIZED has an adapter"
        return self._adapter

    def _drop(self) -> None:
        server, self._server, self._adapter = self._server, None, None
        if server is not None:
            server.close()

    def _release(self) -> None:
        """Nothing: the server that held the memory is ended."""

    def _restore(self) -> None:
        """Nothing: the next policy starts a server."""


def server_plan(plan: RolloutPlan, vllm: VllmPlan, lora: LoraPlan, base: Path) -> ServerPlan:
    return ServerPlan(
        python=vllm.python,
        model=str(base),
        dtype=plan.model.dtype,
        max_length=plan.max_length,
        slots=plan.slots,
        rank=lora.r,
        enforce_eager=vllm.enforce_eager,
        kv_cache_bytes=vllm.kv_cache_bytes,
        startup_timeout=vllm.startup_timeout,
        folder=Path(vllm.folder),
    )


def _peak_rss(pid: int) -> int:
    """Bytes; 0 for a process that has gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)
