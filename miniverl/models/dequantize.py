"""This file holds the dequantized base: the weights an NF4 trainer really computes with, as plain linear layers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import bitsandbytes
import numpy as np
import torch
from torch import nn
from transformers import PreTrainedModel

from miniverl.contract.canonical import tensors_digest


def quantized_layers(module: nn.Module) -> Iterator[tuple[str, bitsandbytes.nn.Linear4bit]]:
    """The 4-bit layers by name, names as they were before LoRA wrapped them."""
    for name, layer in module.named_modules():
        if isinstance(layer, bitsandbytes.nn.Linear4bit):
            yield name.removesuffix(".base_layer"), layer


def dequantized(layer: bitsandbytes.nn.Linear4bit) -> torch.Tensor:
    """[out, in]; the exact values that the layer multiplies with."""
    weight = layer.weight
    return bitsandbytes.functional.dequantize_4bit(weight.data, weight.quant_state)


def dequantize(module: PreTrainedModel) -> PreTrainedModel:
    """Replaces every 4-bit layer by a plain one with the dequantized weights. The module is changed and returned."""
    for name, layer in list(quantized_layers(module)):
        plain = nn.Linear(layer.in_features, layer.out_features, bias=layer.bias is not None, device="meta")
        plain.weight = nn.Parameter(dequantized(layer), requires_grad=False)
        if layer.bias is not None:
            plain.bias = nn.Parameter(layer.bias.data, requires_grad=False)
        parent, _, leaf = name.rpartition(".")
        setattr(module.get_submodule(parent), leaf, plain)
    module.is_loaded_in_4bit = False  # peft chooses its layer class by this flag
    module.is_quantized = False
    for attribute in ("quantization_method", "hf_quantizer"):
        if hasattr(module, attribute):
            delattr(module, attribute)
    if hasattr(module.config, "quantization_config"):
        del module.config.quantization_config
    return module


def dequantized_digest(module: nn.Module) -> str:
    """Digest of the dequantized weights of a quantized module, one layer at a time; "" when nothing is quantized."""
    layers = dict(quantized_layers(module))
    return _digest(layers, lambda name: dequantized(layers[name]))


def plain_digest(module: PreTrainedModel, names: frozenset[str]) -> str:
    """The same digest, taken over the plain layers that ``dequantize`` put in their place."""
    return _digest(names, lambda name: module.get_submodule(name).weight)


def _digest(names: Collection[str], weight_of: Callable[[str], torch.Tensor]) -> str:
    if not names:
        return ""
    return tensors_digest((name, _bytes_of(weight_of(name).detach())) for name in sorted(names))


def _bytes_of(weight: torch.Tensor) -> np.ndarray:
    """As numpy; bf16, which numpy lacks, as its bit pattern."""
    weight = weight.cpu()
    return (weight.view(torch.int16) if weight.dtype == torch.bfloat16 else weight).numpy()
