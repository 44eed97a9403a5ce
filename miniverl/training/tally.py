"""This file holds Tally: the sums of a step, turned into metrics when the step is over."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import torch

from miniverl.contract.parcel import Parcel
from miniverl.metrics import declared
from miniverl.training.objective import Positions


class Tally:
    """Sums over positions and rows; the device is asked for them once per step, not once per chunk."""

    def __init__(self) -> None:
        self._weighted: dict[str, torch.Tensor | float] = defaultdict(float)
        self._token: dict[str, torch.Tensor | float] = defaultdict(float)
        self._largest: dict[str, torch.Tensor] = {}
        self._lengths: list[int] = []
        self._groups = self._cut = 0
        self._prompt_digests: set[str] = set()
        self._variances: list[float] = []
        """Of the rewards within each group."""
        self._weights: torch.Tensor | float = 0.0
        self.denominator = 0.0
        """Sum of the rows' shares; what the gradient is divided by."""

    def add_loss(self, sums: Mapping[str, torch.Tensor], weights: torch.Tensor) -> None:
        """Sums over a chunk of positions, each value times the position's weight; [C] weights."""
        self._weights = self._weights + weights.sum().double()
        for name, value in sums.items():
            self._weighted[name] = self._weighted[name] + value.detach().double()

    @torch.no_grad()
    def add_positions(self, positions: Positions, rollout_logps: torch.Tensor | None) -> None:
        """Entropy, and how far the engine's log-probs are from the trainer's own."""
        logps = positions.logps_CV
        self._add(declared.ENTROPY.name, -(logps.exp() * logps.clamp_min(-1e30)).sum())
        if rollout_logps is None:
            return
        own = positions.logps_C
        difference = (own.exp() - rollout_logps.exp()).abs()
        self._add(declared.PROBS_DIFF_MEAN.name, difference.sum())
        self._raise(declared.PROBS_DIFF_MAX.name, difference.max())
        self._raise(declared.LOGP_DIFF_MAX.name, (own - rollout_logps).abs().max())

    def add_parcel(self, parcel: Parcel) -> None:
        self._groups += len(parcel.kept)
        self._prompt_digests.update(group.prompt_digest for group in parcel.kept)
        self._lengths += parcel.lengths.tolist()
        self._variances += [float(group.rewards.sum(1).var()) for group in parcel.kept if group.rewards is not None]
        self._cut += sum(reason == "length" for group in parcel.kept for reason in group.stop_reasons)

    def metrics(self) -> dict[str, float]:
        """By declared name, each reduced as it is declared."""
        divisors = {"objective": self.denominator, "token_mean": float(self._weights)}
        tokens, rows = sum(self._lengths), len(self._lengths)
        return {
            **{name: float(value) / divisors[declared.BY_NAME[name].reduce] for name, value in self._weighted.items()},
            **{name: float(value) / tokens for name, value in self._token.items()},
            **{name: float(value) for name, value in self._largest.items()},
            **({declared.GROUP_VARIANCE_MEAN.name: sum(self._variances) / self._groups} if self._variances else {}),
            declared.RESPONSE_LENGTH_MEAN.name: tokens / rows,
            declared.RESPONSE_LENGTH_MAX.name: float(max(self._lengths)),
            declared.CLIP_RATIO.name: self._cut / rows,
            declared.UNIQUE_PROMPTS.name: float(len(self._prompt_digests)),
            declared.GROUPS.name: float(self._groups),
            declared.TRAJECTORIES.name: float(rows),
            declared.GENERATED_TOKENS.name: float(tokens),
        }

    def _add(self, name: str, value: torch.Tensor) -> None:
        self._token[name] = self._token[name] + value.double()

    def _raise(self, name: str, value: torch.Tensor) -> None:
        self._largest[name] = torch.maximum(self._largest.get(name, value), value)
