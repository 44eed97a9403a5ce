"""This file holds the base that a server serves: the student's own weights, as the trainer computes with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from transformers import AutoConfig

from miniverl.models.adapter import copy_tokenizer
from miniverl.models.dequantize import dequantize, plain_digest, quantized_layers
from miniverl.models.load import load_base
from miniverl.plan.plan import ModelPlan


def served_base(plan: ModelPlan, folder: Path) -> tuple[Path, str]:
    """The folder a server loads, and the digest of its dequantized layers ("" when nothing was quantized).

    The student's own folder will do where it holds exactly what the trainer computes with. Otherwise a folder is
    written: NF4 weights dequantized (the original ones are another policy), and rows of embedding and head beyond the
    tokenizer's vocabulary cut off (no distribution may hold them).
    """
    head = (
        AutoConfig.from_pretrained(plan.path, local_files_only=True, trust_remote_code=False)
        .get_text_config()
        .vocab_size
    )
    if plan.quantization == "none" and head == plan.vocabulary:
        return Path(plan.path), ""  # known without loading anything
    module = load_base(plan, device=torch.device("cpu"))
    quantized = frozenset(name for name, _ in quantized_layers(module))
    module = dequantize(module) if quantized else module
    digest = plain_digest(module, quantized)
    module.resize_token_embeddings(plan.vocabulary)
    shutil.rmtree(folder, ignore_errors=True)
    module.save_pretrained(folder)
    copy_tokenizer(plan, folder)
    return folder, digest
