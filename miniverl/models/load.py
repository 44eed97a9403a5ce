"""This file holds the loading of a base model from a folder of safetensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from miniverl.errors import ModelError
from miniverl.plan.plan import ModelPlan

transformers_logging.disable_progress_bar()


def load_base(plan: ModelPlan, *, device: torch.device) -> PreTrainedModel:
    """The model of ``plan`` on ``device``: frozen, in eval mode, NF4 where the plan says so, computing in its dtype.

    Raises ModelError when the folder has no safetensors (pickled weights are never loaded), when they cannot be read,
    or when a tensor is missing or has another shape: transformers would draw it at random and go on.
    """
    if not any(Path(plan.path).glob("*.safetensors")):
        raise ModelError(
            "models.id", value=plan.id, problem="its folder has no *.safetensors", fix="convert the weights first"
        )
    try:
        module, info = AutoModelForCausalLM.from_pretrained(
            plan.path,
            dtype=torch_dtype(plan.dtype),
            quantization_config=_nf4(plan) if plan.quantization == "nf4" else None,
            device_map={"": device} if plan.quantization == "nf4" else None,
            attn_implementation="sdpa",
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        raise ModelError(
            "models.id", value=plan.id, problem=f"cannot be loaded: {str(error).splitlines()[0][:200]}",
            fix="check the files in its folder, or copy them again",
        ) from error  # fmt: skip
    _refuse_holes(plan, info)
    module = module if plan.quantization == "nf4" else module.to(device)
    return module.requires_grad_(False).eval()


def _refuse_holes(plan: ModelPlan, info: Mapping[str, Any]) -> None:
    for kind, what in (
        ("missing_keys", "are missing"),
        ("mismatched_keys", "have another shape than config.json says"),
    ):
        if info[kind]:
            names = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info[kind])
            raise ModelError(
                "models.id", value=plan.id, problem=f"{len(names)} of its tensors {what}, such as {names[0]}",
                fix="copy the weights again, or use the config.json that belongs to them",
            )  # fmt: skip


def torch_dtype(name: str) -> torch.dtype:
    return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]


def _nf4(plan: ModelPlan) -> BitsAndBytesConfig:
    """NF4 without double quantization: one rounding fewer, and dequantizing is twice as fast (QLoRA, section 3)."""
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=False,
        bnb_4bit_compute_dtype=torch_dtype(plan.dtype),
    )
