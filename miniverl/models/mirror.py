"""This file holds Mirror: the model an engine samples from, bit for bit the policy the trainer holds."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax
from transformers import PreTrainedModel

from miniverl.contract.policy import Policy
from miniverl.errors import IdentityError
from miniverl.models import adapter
from miniverl.models.dequantize import dequantize, plain_digest, quantized_layers
from miniverl.models.load import load_base, torch_dtype
from miniverl.plan.plan import ModelPlan

PROBE = 16
"""Ids of the text that tells whether an adapter does anything; also the only ids it is told by."""


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
        self.vocabulary = plan.vocabulary
        self._compute_dtype = torch_dtype(plan.dtype)
        self._full = plan.lora is None
        self._without_adapter = None if self._full else self._probe(module)
        self.module: PreTrainedModel = adapter.attach(module, plan, seed=0).eval()

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

    def adapter_effect(self) -> float | None:
        """Largest absolute change of a log-prob that the adapter in force makes on a short text; None: no adapter."""
        if self._without_adapter is None:
            return None
        return float((self._probe(self.module) - self._without_adapter).abs().max())

    @torch.inference_mode()
    def _probe(self, module: PreTrainedModel) -> Tensor:
        """float32 [ids, ids]; log-probs after each id of a short text, among those few: the whole head is not cast."""
        head = module.get_output_embeddings()
        ids = torch.arange(min(PROBE, self.vocabulary), device=head.weight.device)
        hidden = module.get_decoder()(input_ids=ids[None], use_cache=False).last_hidden_state[0]
        bias = None if head.bias is None else head.bias[ids].float()
        return log_softmax(linear(hidden.float(), head.weight[ids].float(), bias), dim=-1).cpu()
