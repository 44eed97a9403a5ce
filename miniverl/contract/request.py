"""This file holds GenerationRequest: one sample that an engine is asked to draw."""

from __future__ import annotations

from dataclasses import dataclass

from miniverl.contract.policy import PolicySnapshot
from miniverl.contract.prompt import Prompt, group_id
from miniverl.errors import ContractError
from miniverl.seeds import seed_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are drawn. vLLM's names and order: temperature, then top_k, then top_p."""

    temperature: float
    """0 is greedy; else logits are divided by it."""
    top_p: float = 1.0
    """In (0, 1]; the smallest set of likeliest ids whose mass reaches it is kept."""
    top_k: int = 0
    """Likeliest ids kept; 0 keeps all."""
    max_new_tokens: int
    """Response limit in tokens, the stop token included; >= 1."""
    stop_token_ids: tuple[int, ...]
    """Ids that end a response; the stop token belongs to the response and to the loss."""
    stop: tuple[str, ...] = ()
    """Strings that end a response: its last token completes one, its text ends before it."""
    logprobs: bool = True
    """Whether log-probs of the sampled tokens are returned."""

    def __post_init__(self) -> None:
        for bad, field, fix in (
            (not 0.0 <= self.temperature <= 100.0, "temperature", "set it to 0 (greedy) or a positive number"),
            (not 0.0 < self.top_p <= 1.0, "top_p", "set it within (0, 1]; 1 keeps everything"),
            (self.top_k < 0, "top_k", "set it to 0 (off) or a positive number"),
            (self.max_new_tokens < 1, "max_new_tokens", "set it to 1 or more"),
            ("" in self.stop, "stop", "leave out the empty string, which is in every text"),
        ):
            if bad:
                raise ContractError(f"sampling.{field}", value=getattr(self, field), problem="is out of range", fix=fix)

    @property
    def greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def truncates(self) -> bool:
        """Whether tokens are drawn from less than the whole vocabulary."""
        return not self.greedy and (self.top_p < 1.0 or self.top_k > 0)

    @property
    def scoring_temperature(self) -> float:
        """The temperature of the recorded log-probs: the request's own; 1 for greedy requests."""
        return self.temperature or 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GenerationRequest:
    """One sample of one group, under one policy. Requests of a group arrive together, in order of sample index."""

    group_id: str
    cursor: int
    """Position of the prompt in the run's order; counts over epochs."""
    sample_index: int
    """0 <= sample_index < samples."""
    samples: int
    """n, the size of the group."""
    seed: int
    """63 bits; with the token's index it fixes every draw."""
    prompt: Prompt
    sampling: Sampling
    snapshot_digest: str
    """The only policy that may answer."""

    @property
    def request_id(self) -> str:
        return f"{self.group_id}/{self.sample_index}"


def requests_for(
    prompts: list[tuple[int, Prompt]], snapshot: PolicySnapshot, *, samples: int, sampling: Sampling, run_seed: int
) -> tuple[GenerationRequest, ...]:
    """The requests for n samples of each (cursor, prompt), in cursor order."""
    digest = snapshot.digest
    return tuple(
        GenerationRequest(
            group_id=(name := group_id(cursor, prompt)),
            cursor=cursor,
            sample_index=index,
            samples=samples,
            seed=seed_for(run_seed, name, index, snapshot.version),
            prompt=prompt,
            sampling=sampling,
            snapshot_digest=digest,
        )
        for cursor, prompt in prompts
        for index in range(samples)
    )
