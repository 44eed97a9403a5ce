"""This file holds FrozenModel: a model that is never trained, as an engine wants it."""

from __future__ import annotations

from transformers import PreTrainedModel

from miniverl.contract.policy import Policy


class FrozenModel:
    """The teacher's weights behind the interface that engines sample from; no policy changes them."""

    def __init__(self, module: PreTrainedModel, *, vocabulary: int) -> None:
        self.module = module
        self.vocabulary = vocabulary

    def load(self, policy: Policy) -> None:
        """Nothing to take up: the snapshot only names the weights that are already there."""
        policy.verify()

    def adapter_effect(self) -> None:
        """There is no adapter."""
