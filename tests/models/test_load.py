import dataclasses
import shutil
from pathlib import Path

import bitsandbytes
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

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


@pytest.fixture
def damaged(model_plan, tmp_path):
    """Plans for copies of the student whose weights were changed."""
    source = Path(model_plan().path)

    def make(change):
        for file in source.iterdir():
            shutil.copy(file, tmp_path)
        change(tmp_path / "model.safetensors")
        return dataclasses.replace(model_plan(), path=str(tmp_path))

    return make


def without(path, name, shape=None):
    tensors = load_file(path)
    tensors.pop(name)
    if shape is not None:
        tensors[name] = np.zeros(shape, np.float32)
    save_file(tensors, path, metadata={"format": "pt"})


NAME = "model.layers.1.mlp.up_proj.weight"


def test_a_missing_tensor_is_never_drawn_at_random(damaged):
    with pytest.raises(ModelError, match=rf"1 of its tensors are missing, such as {NAME}"):
        load_base(damaged(lambda path: without(path, NAME)), device=CPU)


def test_a_misshapen_tensor_is_refused(damaged):
    with pytest.raises(ModelError, match=r"miniverl://tiny-student"):
        load_base(damaged(lambda path: without(path, NAME, (3, 4))), device=CPU)


def test_weights_that_cannot_be_read_are_the_models_fault(damaged):
    with pytest.raises(ModelError, match=r"miniverl://tiny-student.*cannot be loaded"):
        load_base(damaged(lambda path: path.write_bytes(path.read_bytes()[:5000])), device=CPU)
