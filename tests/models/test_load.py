import dataclasses

import bitsandbytes
import pytest
import torch

from miniverl.errors import ModelError
from miniverl.models.load import load_base

CPU = torch.device("cpu")


def test_a_base_is_frozen_and_in_eval_mode(model_plan):
    module = load_base(model_plan(), device=CPU)
    assert not module.training
    assert not any(parameter.requires_grad for parameter in module.parameters())


def test_nf4_holds_every_linear_layer_but_the_head_in_four_bits(model_plan):
    module = load_base(model_plan(quantization="nf4"), device=CPU)
    four_bit = {name for name, layer in module.named_modules() if isinstance(layer, bitsandbytes.nn.Linear4bit)}
    linear = {name for name, layer in module.named_modules() if isinstance(layer, torch.nn.Linear)}
    assert four_bit == linear - {"lm_head"}


def test_a_folder_without_safetensors_is_refused_by_name(model_plan, tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickled")
    with pytest.raises(ModelError, match=r"miniverl://tiny-student.*no \*\.safetensors"):
        load_base(dataclasses.replace(model_plan(), path=str(tmp_path)), device=CPU)
