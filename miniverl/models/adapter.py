"""This file holds the trainable part of a model: LoRA layers, or all weights, and their names and bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from peft import LoraConfig, inject_adapter_in_model
from safetensors.numpy import save_file
from torch import nn
from transformers import PreTrainedModel

from miniverl.contract.canonical import json_digest
from miniverl.errors import IdentityError, ModelError
from miniverl.plan.plan import LoraPlan, ModelPlan
from miniverl.seeds import derive_seed

NAME = "default"
"""peft's name of the only adapter."""

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "vocab.json",
    "merges.txt",
)  # fmt: skip


def attach_lora(module: PreTrainedModel, plan: LoraPlan, *, seed: int) -> PreTrainedModel:
    """Injects fp32 LoRA layers, B = 0, A drawn from ``seed`` (LoRA, Hu et al. 2021, section 4.1).

    The layers are injected, not wrapped around: the module keeps its class, so engines call it as they would the base.
    """
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed("lora", seed))
        try:
            module = inject_adapter_in_model(_lora_config(plan), module, adapter_name=NAME)
        except (ValueError, re.error) as error:
            raise ModelError(
                "models.student.lora.target_modules", value=plan.target_modules, problem=str(error).split("\n")[0],
                fix="use all-linear or the names of linear layers of this model",
            ) from None  # fmt: skip
    for parameter in trainable(module).values():
        parameter.data = parameter.data.float()
    return module


def attach(module: PreTrainedModel, plan: ModelPlan, *, seed: int) -> PreTrainedModel:
    """Makes ``module`` trainable as the plan says: LoRA, or every weight in fp32 (the master weights)."""
    if plan.lora is not None:
        return attach_lora(module, plan.lora, seed=seed)
    if plan.quantization != "none":
        raise ModelError(
            "models.student.quantization", value=plan.quantization, problem="4-bit weights cannot be trained in full",
            fix="add models.student.lora, or set quantization: none",
        )  # fmt: skip
    return module.float().requires_grad_(True)


def trainable(module: nn.Module) -> dict[str, nn.Parameter]:
    """Trainable parameters by name, in order of name; a tied weight appears once."""
    return dict(sorted((name, value) for name, value in module.named_parameters() if value.requires_grad))


def read(module: nn.Module) -> dict[str, np.ndarray]:
    """A float32 copy of every trainable tensor on the host."""
    return {name: value.detach().float().cpu().numpy().copy() for name, value in trainable(module).items()}


@torch.no_grad()
def write(module: nn.Module, tensors: dict[str, np.ndarray]) -> None:
    """Copies tensors over parameters of the same names; a missing, extra or misshapen one is an IdentityError."""
    parameters = trainable(module)
    if parameters.keys() != tensors.keys():
        odd = sorted(parameters.keys() ^ tensors.keys())
        raise IdentityError("adapter", value=odd[:3], problem="other tensor names", fix="use one recipe on both sides")
    for name, parameter in parameters.items():
        if tuple(parameter.shape) != tensors[name].shape:
            raise IdentityError(
                f"adapter.{name}", value=tensors[name].shape, problem=f"the model has {tuple(parameter.shape)}",
                fix="use one LoRA rank and one base model on both sides",
            )  # fmt: skip
        parameter.copy_(torch.from_numpy(np.array(tensors[name])))  # a copy: what came through Ray is read-only


def largest_b(tensors: Mapping[str, np.ndarray]) -> float:
    """Largest absolute entry of the LoRA matrices B; 0: the adapter does nothing, or there is none."""
    return max((float(np.abs(array).max()) for name, array in tensors.items() if ".lora_B." in name), default=0.0)


def manifest_digest(plan: ModelPlan, names: list[str]) -> str:
    """Digest of what is trained: the LoRA configuration and the names of the trainable tensors."""
    return json_digest({"lora": plan.lora, "names": names})


def export(module: PreTrainedModel, plan: ModelPlan, folder: Path) -> None:
    """Writes a folder that peft (LoRA) or transformers (full weights, with the tokenizer) loads as it is."""
    if plan.lora is None:
        module.save_pretrained(folder)
        copy_tokenizer(plan, folder)
        return
    write_peft(read(module), plan, plan.lora, folder)


def copy_tokenizer(plan: ModelPlan, folder: Path) -> None:
    for name in TOKENIZER_FILES:
        if (source := Path(plan.path) / name).exists():
            (folder / name).write_bytes(source.read_bytes())


def write_peft(tensors: Mapping[str, np.ndarray], plan: ModelPlan, lora: LoraPlan, folder: Path) -> None:
    """Writes LoRA tensors, by parameter name, as the folder that peft and vLLM load."""
    named = {f"base_model.model.{name.replace(f'.{NAME}.', '.')}": array for name, array in tensors.items()}
    save_file(named, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {**_lora_config(lora).to_dict(), "base_model_name_or_path": plan.id, "inference_mode": True}
    plain = {key: sorted(value) if isinstance(value, set) else value for key, value in config.items()}
    (folder / "adapter_config.json").write_text(json.dumps(plain, indent=2, sort_keys=True, default=str) + "\n")


def _lora_config(plan: LoraPlan) -> LoraConfig:
    targets = plan.target_modules if isinstance(plan.target_modules, str) else list(plan.target_modules)
    return LoraConfig(
        r=plan.r, lora_alpha=plan.lora_alpha, lora_dropout=plan.lora_dropout, target_modules=targets,
        task_type="CAUSAL_LM",
    )  # fmt: skip
