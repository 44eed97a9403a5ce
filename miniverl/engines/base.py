"""This file holds what every rollout engine is: its protocol, its lifecycle and the model it samples from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Protocol

from torch import nn

from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest
from miniverl.errors import IdentityError, StateError


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine can promise about the groups it returns."""

    logps: bool
    """Full-vocabulary log-probs at the request's own temperature."""
    behaviour_logps: bool
    """Log-probs renormalised over what top-p and top-k kept."""
    stop_strings: bool
    deterministic: bool
    """A row's tokens and log-probs are the same bits whoever shares its batch."""


class PolicyModel(Protocol):
    """A model whose trainable tensors can be replaced by a policy's."""

    @property
    def module(self) -> nn.Module:
        """A transformers causal language model in eval mode, perhaps with LoRA layers injected."""

    @property
    def vocabulary(self) -> int:
        """Ids the tokenizer can produce; logits beyond are cut off before anything else."""

    def load(self, policy: Policy) -> None:
        """Verifies the bytes against the snapshot, then copies them into the module. IdentityError on a mismatch."""

    def adapter_effect(self) -> float | None:
        """Largest absolute change of a log-prob that the adapter in force makes on a short text; None: no adapter."""


class Engine(Protocol):
    """Draws samples from exactly one policy at a time."""

    @property
    def capabilities(self) -> Capabilities: ...

    def synchronize(self, policy: Policy) -> None:
        """Requests of any other identity are refused from here on. Free when the policy is in force already."""

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[Group]:
        """Complete groups, in the order they finish. Every check is done before the model runs and before this returns.

        Requests of a group stand together, in order of sample index, and all requests share one sampling. Raises
        StateError, IdentityError or ContractError.
        """

    def adapter_effect(self) -> float | None:
        """Largest absolute change of a log-prob that the adapter in force makes on a short text; None: no adapter."""

    def quiesce(self) -> None:
        """No more samples from the policy in force; a generation under way is ended."""

    def sleep(self) -> None:
        """Gives accelerator memory back."""

    def wake(self) -> None:
        """Takes memory again; a policy must be synchronized before the next sample."""

    def close(self) -> None:
        """The end; may be called in any state, and twice."""

    def metrics(self) -> Mapping[str, float]:
        """Counters since the engine was made, by the names of ``METRICS``. What it cannot measure is left out."""


METRICS: Mapping[str, str] = {
    "generated_tokens": "tokens of finished samples",
    "physical_batches": "passes of the model",
    "prefills": "prompts whose keys and values were computed",
    "decode_steps": "passes of one token per row",
    "slot_occupancy": "share of the rows of those passes whose token was kept",
    "slots": "rows decoded at once at most, now",
    "downshifts": "times the slots were halved for want of memory",
    "compiled": "1 when the decode step is compiled, 0 when it is not or no compiler was found",
    "syncs": "policies taken up",
    "peak_bytes": "most memory held at once",
    "server_starts": "servers started",
    "seconds_cold_start": "until the engine could take up a policy",
    "seconds_compile": "compiling and warming up, before the first token",
    "seconds_sync": "taking up policies",
    "seconds_prefill": "on prompts",
    "seconds_decode": "on tokens after the first pass",
    "seconds_generate": "from requests to their last answers, where prompts and tokens cannot be told apart",
    "seconds_first_token": "from the last generate() to the first token of a row",
}
"""What an engine may count since it was made."""


class State(StrEnum):
    NEW = "NEW"
    SYNCHRONIZED = "SYNCHRONIZED"
    QUIESCED = "QUIESCED"
    ASLEEP = "ASLEEP"
    CLOSED = "CLOSED"


MOVES: Mapping[State, Mapping[str, State]] = {
    State.NEW: {"synchronize": State.SYNCHRONIZED, "close": State.CLOSED},
    State.SYNCHRONIZED: {
        "synchronize": State.SYNCHRONIZED,
        "generate": State.SYNCHRONIZED,
        "quiesce": State.QUIESCED,
        "sleep": State.ASLEEP,
        "close": State.CLOSED,
    },
    State.QUIESCED: {
        "synchronize": State.SYNCHRONIZED,
        "quiesce": State.QUIESCED,
        "sleep": State.ASLEEP,
        "close": State.CLOSED,
    },
    State.ASLEEP: {"wake": State.QUIESCED, "close": State.CLOSED},
    State.CLOSED: {"close": State.CLOSED},
}
"""Per state: the calls it allows and where they lead."""

REMEDY: Mapping[State, str] = {
    State.NEW: "call synchronize(policy) first",
    State.SYNCHRONIZED: "call quiesce() or sleep() first",
    State.QUIESCED: "call synchronize(policy) first",
    State.ASLEEP: "call wake(), then synchronize(policy)",
    State.CLOSED: "make a new engine",
}


class Lifecycle(ABC):
    """The moves of an engine, once for all engines. Subclasses fill in what a move does to their model."""

    def __init__(self) -> None:
        self.state = State.NEW
        self._snapshot: PolicySnapshot | None = None
        self._serving: object | None = None
        self._synchronized, self._seconds_synchronizing = 0, 0.0

    def metrics(self) -> Mapping[str, float]:
        """Subclasses add what they count."""
        return {"syncs": self._synchronized, "seconds_sync": self._seconds_synchronizing}

    def synchronize(self, policy: Policy) -> None:
        self._allow("synchronize")
        if self._snapshot is not None and self._snapshot.digest == policy.snapshot.digest:
            return
        if self.state is State.SYNCHRONIZED:
            self._leave(State.QUIESCED)  # a load that fails halfway must leave nothing that could sample
        began = perf_counter()
        self._load(policy)
        self._synchronized += 1
        self._seconds_synchronizing += perf_counter() - began
        self._snapshot = policy.snapshot
        self.state = self._allow("synchronize")

    def quiesce(self) -> None:
        self._leave(self._allow("quiesce"))

    def sleep(self) -> None:
        self._leave(self._allow("sleep"))
        self._drop()
        self._release()

    def wake(self) -> None:
        target = self._allow("wake")
        self._restore()
        self._leave(target)

    def close(self) -> None:
        self._leave(self._allow("close"))
        self._drop()

    def _accept(self, requests: Sequence[GenerationRequest]) -> tuple[PolicySnapshot, object]:
        """The active snapshot, if every request asks for it, and the token of this generation."""
        self._allow("generate")
        assert self._snapshot is not None, "SYNCHRONIZED has a snapshot"
        active = self._snapshot.digest
        for request in requests:
            if request.snapshot_digest != active:
                raise IdentityError(
                    f"request {request.request_id}",
                    value=request.snapshot_digest[:12],
                    problem=f"the active policy is version {self._snapshot.version}, snapshot {active[:12]}",
                    fix="synchronize(policy) and make the requests from one and the same snapshot",
                )
        self._serving = object()
        return self._snapshot, self._serving

    def _refuse_unless_serving(self, generation: object) -> None:
        """A generation that another call has ended must not go on under other weights or in another's memory."""
        if generation is not self._serving:
            raise StateError(
                "generate()",
                value=str(self.state),
                problem="this generation was ended by a later call",
                fix="use up one generation before the next generate(), synchronize(), quiesce(), sleep() or close()",
            )

    def _allow(self, call: str) -> State:
        target = MOVES[self.state].get(call)
        if target is None:
            raise StateError(
                f"{call}()", problem=f"the engine is {self.state}, which does not allow it", fix=REMEDY[self.state]
            )
        return target

    def _leave(self, target: State) -> None:
        self.state, self._snapshot, self._serving = target, None, None

    @abstractmethod
    def _load(self, policy: Policy) -> None:
        """Puts the policy's tensors into the model."""

    @abstractmethod
    def _drop(self) -> None:
        """Forgets what only this engine holds. The model stays where it is: it may serve others."""

    @abstractmethod
    def _release(self) -> None:
        """Takes the model off the accelerator."""

    @abstractmethod
    def _restore(self) -> None:
        """Puts it back."""
