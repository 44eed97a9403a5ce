"""This file holds Policy: the snapshot that names a policy exactly, with the tensors it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from miniverl.contract.canonical import json_digest, tensors_digest
from miniverl.errors import IdentityError


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySnapshot:
    """Every fact that could change a token's probability. Two snapshots with one digest are one policy."""

    version: int
    """Policy version: steps finished, skipped ones included."""
    model_id: str
    """Base model as the recipe names it."""
    model_revision: str
    """Commit of a hub model, or the SHA-256 of the files of a local folder."""
    tokenizer_digest: str
    """SHA-256 over vocabulary, merges and added tokens."""
    adapter_manifest: str
    """SHA-256 of the LoRA configuration; of the list of trainable names for full weights."""
    tensor_digest: str
    """``tensors_digest`` of the live trainable tensors."""
    base_digest: str
    """``tensors_digest`` of the dequantized base an engine must hold; "" unless quantized: the revision says it all."""
    dtype: str
    """float32 or bfloat16: what the base computes in."""
    quantization: str
    """none or nf4: what the trainer holds the base in."""
    backend: str
    """Rollout backend that is to sample from it."""
    backend_version: str
    """Version of that backend and of the library it runs on."""
    profile: str
    """Identity of the verl profile the recipe came from; "native" for native recipes."""
    experiment: str
    """The plan's experiment digest."""

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON."""
        return json_digest(self)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Policy:
    """A snapshot and the trainable tensors it names, as they cross from the trainer to an engine."""

    snapshot: PolicySnapshot
    tensors: Mapping[str, np.ndarray]
    """float32 arrays by parameter name: the LoRA tensors, or every trainable weight."""

    def verify(self) -> None:
        """Raises IdentityError when the bytes received are not the bytes named."""
        found = tensors_digest(self.tensors)
        if found != self.snapshot.tensor_digest:
            raise IdentityError(
                "policy.tensors",
                value=found[:12],
                problem=f"the snapshot of version {self.snapshot.version} names {self.snapshot.tensor_digest[:12]}",
                fix="send the tensors and the snapshot of one and the same policy() call",
            )
