"""This file holds the loading of a base model from a folder of safetensors."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from miniverl.errors import ModelError
from miniverl.plan.plan import ModelPlan

transformers_logging.disable_progress_bar()


def load_base(plan: ModelPlan, *, device: torch.device) -> PreTrainedModel:
    """The model of ``plan`` on ``device``: frozen, in eval mode, NF4 where the plan says so.

    On a CPU every product is computed in float32: bf16 products are several times slower there, and NF4's own
    compute type would round the dequantized weights a second time. Raises ModelError when the folder has no
    safetensors (pickled weights are never loaded).
    """
    if not any(Path(plan.path).glob("*.safetensors")):
        raise ModelError(
            "models.id", value=plan.id, problem="its folder has no *.safetensors", fix="convert the weights first"
        )
    module = AutoModelForCausalLM.from_pretrained(
        plan.path,
        dtype=torch_dtype(plan.dtype),
        quantization_config=_nf4(plan) if plan.quantization == "nf4" else None,
        device_map={"": device} if plan.quantization == "nf4" else None,
        attn_implementation="sdpa",
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
    )
    module = module if plan.quantization == "nf4" else module.to(device)
    return module.requires_grad_(False).eval()


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
