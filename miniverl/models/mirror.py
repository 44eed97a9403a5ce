"""This file holds Mirror: the model an engine samples from, bit for bit the policy the trainer holds."""

from __future__ import annotations

import torch
from transformers import PreTrainedModel

from miniverl.contract.policy import Policy
from miniverl.errors import IdentityError
from miniverl.models import adapter
from miniverl.models.dequantize import dequantize, plain_digest, quantized_layers
from miniverl.models.load import load_base, torch_dtype
from miniverl.plan.plan import ModelPlan


class Mirror:
    """The trainer's base, dequantized where the trainer holds NF4, with the trainer's live tensors copied in.

    An NF4 student never samples from the original weights: those are another policy. Nothing is merged: merging
    into rounded weights and taking out again drifts.
    """

    def __init__(self, plan: ModelPlan, *, device: torch.device) -> None:
        module = load_base(plan, device=device)
        quantized = frozenset(name for name, _ in quantized_layers(module))
        module = dequantize(module) if quantized else module
        self.base_digest = plain_digest(module, quantized)
        self.module: PreTrainedModel = adapter.attach(module, plan, seed=0).eval()
        self.vocabulary = plan.vocabulary
        self._compute_dtype = torch_dtype(plan.dtype)
        self._full = plan.lora is None

    def load(self, policy: Policy) -> None:
        """Takes up a policy after checking its bytes. Raises IdentityError when anything is not what it names."""
        if policy.snapshot.base_digest != self.base_digest:
            raise IdentityError(
                "policy.base_digest", value=policy.snapshot.base_digest[:12],
                problem=f"this engine holds the dequantized base {self.base_digest[:12]}",
                fix="load the same model files with the same bitsandbytes on both sides",
            )  # fmt: skip
        policy.verify()
        adapter.write(self.module, dict(policy.tensors))
        if self._full:
            self.module.to(self._compute_dtype)
