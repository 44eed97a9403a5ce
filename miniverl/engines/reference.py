"""This file holds ReferenceEngine, the oracle: one row at a time, the whole prefix again for every token, no cache."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from typing import cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from miniverl.contract.group import Group
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.contract.request import GenerationRequest, Sampling
from miniverl.engines.assemble import Decode, Sample, assemble
from miniverl.engines.base import Capabilities, Lifecycle, PolicyModel
from miniverl.engines.intake import whole_groups
from miniverl.models.device import peak_bytes


class ReferenceEngine(Lifecycle):
    """Slow and obviously right. Shares only the definition of the random numbers with the engines it judges."""

    capabilities = Capabilities(logps=True, behaviour_logps=True, stop_strings=True, deterministic=True)

    def __init__(self, model: PolicyModel, *, decode: Decode) -> None:
        super().__init__()
        self._model, self._decode = model, decode
        self._device = next(model.module.parameters()).device
        self._tokens, self._seconds = 0, 0.0

    def generate(self, requests: Sequence[GenerationRequest]) -> Iterator[Group]:
        snapshot, generation = self._accept(requests)
        return self._groups(whole_groups(requests), snapshot, generation)

    def metrics(self) -> Mapping[str, float]:
        return {
            **super().metrics(),
            "generated_tokens": self._tokens,
            "physical_batches": self._tokens,
            "prefills": 0,
            "decode_steps": self._tokens,
            "slot_occupancy": 1.0,
            "seconds_prefill": 0.0,
            "seconds_decode": self._seconds,
            "peak_bytes": peak_bytes(self._device),
        }

    def adapter_effect(self) -> float | None:
        return self._model.adapter_effect()

    def _groups(
        self, groups: list[tuple[GenerationRequest, ...]], snapshot: PolicySnapshot, generation: object
    ) -> Iterator[Group]:
        for group in groups:
            samples = []
            for request in group:
                self._refuse_unless_serving(generation)
                samples.append(self._sample(request))
            yield assemble(group, samples, snapshot=snapshot, decode=self._decode)

    def _sample(self, request: GenerationRequest) -> Sample:
        sampling, start = request.sampling, perf_counter()
        prefix = [int(token) for token in request.prompt.ids]
        tokens: list[int] = []
        logps: list[float] = []
        behaviour: list[float] = []
        stop = None
        while len(tokens) < sampling.max_new_tokens and stop is None:
            scores = self._log_softmax(prefix + tokens, sampling.scoring_temperature)
            if sampling.greedy:
                kept, token = np.arange(len(scores)), int(scores.argmax())
            else:
                kept = kept_ids(scores, sampling)
                token = draw(scores, kept, uniform(request.seed, len(tokens)))
            tokens.append(token)
            logps.append(scores[token])
            behaviour.append(scores[token] - np.log(np.exp(scores[kept].astype(np.float64)).sum()))
            if token in sampling.stop_token_ids:
                break
            stop = first_stop(self._decode(tokens), sampling.stop) if sampling.stop else None
        self._tokens += len(tokens)
        self._seconds += perf_counter() - start
        return Sample(
            tokens=np.array(tokens, np.int32),
            logps=np.array(logps, np.float32) if sampling.logprobs else None,
            behaviour_logps=np.array(behaviour, np.float32) if sampling.logprobs and sampling.truncates else None,
            stop=stop,
        )

    @torch.inference_mode()
    def _log_softmax(self, ids: list[int], temperature: float) -> np.ndarray:
        """float32 [V]; log-probs of the token that follows ``ids``."""
        module = cast(PreTrainedModel, self._model.module)
        output = module.get_decoder()(input_ids=torch.tensor([ids], device=self._device), use_cache=False)
        weight = cast(Tensor, module.get_output_embeddings().weight)
        logits = torch.nn.functional.linear(output.last_hidden_state[0, -1].float(), weight.float())
        return (logits[: self._model.vocabulary] / temperature).log_softmax(-1).cpu().numpy()

    def _load(self, policy: Policy) -> None:
        self._model.load(policy)

    def _drop(self) -> None:
        """Nothing: no cache, no copy."""

    def _release(self) -> None:
        self._model.module.to("cpu")

    def _restore(self) -> None:
        self._model.module.to(self._device)


def uniform(seed: int, index: int) -> float:
    """The 53-bit uniform in [0, 1) that decides token ``index`` of the sample with this seed."""
    return np.random.Generator(np.random.Philox(key=seed, counter=index)).random()


def kept_ids(scores: np.ndarray, sampling: Sampling) -> np.ndarray:
    """The ids that top-k and then top-p leave, in id order. ``scores``: log-probs [V]."""
    likeliest = np.argsort(-scores, kind="stable")
    if sampling.top_k:
        likeliest = likeliest[: sampling.top_k]
    if sampling.top_p < 1.0:
        mass = np.cumsum(np.exp(scores[likeliest].astype(np.float64)))
        crossing = int(np.argmax(mass >= sampling.top_p * mass[-1]))
        likeliest = likeliest[: crossing + 1]
    return np.sort(likeliest)


def draw(scores: np.ndarray, kept: np.ndarray, u: float) -> int:
    """The first kept id whose cumulative probability exceeds u times the total."""
    mass = np.cumsum(np.exp(scores[kept].astype(np.float64)))
    return int(kept[np.argmax(mass > u * mass[-1])])


def first_stop(text: str, stops: Sequence[str]) -> str | None:
    """The stop string that begins first in ``text``; of several there, the first of the list. None: there is none."""
    found = [(text.find(stop), place) for place, stop in enumerate(stops) if stop in text]
    return stops[min(found)[1]] if found else None
