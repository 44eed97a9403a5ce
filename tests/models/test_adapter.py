import dataclasses
import json

import numpy as np
import pytest
import torch
from peft import PeftModel

from miniverl.contract.canonical import tensors_digest
from miniverl.errors import IdentityError, ModelError
from miniverl.models import adapter
from miniverl.models.load import load_base

CPU = torch.device("cpu")
IDS = torch.arange(1, 13)[None]


def attached(plan, seed=1):
    return adapter.attach(load_base(plan, device=CPU), plan, seed=seed).eval()


def perturbed(module):
    """The module with an adapter that is not zero."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in adapter.trainable(module).values():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return module


def test_a_fresh_adapter_changes_nothing(model_plan):
    base = load_base(model_plan(), device=CPU)(IDS).logits
    assert torch.equal(attached(model_plan())(IDS).logits, base)


def test_the_first_adapter_depends_on_the_seed_alone(model_plan):
    torch.manual_seed(1)
    first = tensors_digest(adapter.read(attached(model_plan(), seed=1)))
    torch.manual_seed(2)
    assert tensors_digest(adapter.read(attached(model_plan(), seed=1))) == first
    assert tensors_digest(adapter.read(attached(model_plan(), seed=2))) != first


def test_lora_covers_every_linear_layer_but_the_head(model_plan):
    names = adapter.read(attached(model_plan()))
    assert len(names) == 4 * 7 * 2
    assert not any("lm_head" in name for name in names)


def test_what_is_read_and_written_back_is_the_same_policy(model_plan):
    source, target = perturbed(attached(model_plan())), attached(model_plan(), seed=9)
    assert not torch.equal(source(IDS).logits, target(IDS).logits)
    adapter.write(target, adapter.read(source))
    assert torch.equal(source(IDS).logits, target(IDS).logits)


def test_tensors_of_another_shape_or_name_are_refused(model_plan):
    module = attached(model_plan())
    tensors = adapter.read(module)
    name = next(iter(tensors))
    with pytest.raises(IdentityError, match="other tensor names"):
        adapter.write(module, {key: value for key, value in tensors.items() if key != name})
    with pytest.raises(IdentityError, match="one LoRA rank"):
        adapter.write(module, {**tensors, name: np.zeros((1, 1), np.float32)})


def test_plain_peft_loads_the_export_and_gives_the_same_logits(model_plan, tmp_path):
    module = perturbed(attached(model_plan()))
    adapter.export(module, model_plan(), tmp_path)
    loaded = PeftModel.from_pretrained(load_base(model_plan(), device=CPU), tmp_path).eval()
    assert torch.allclose(loaded(IDS).logits, module(IDS).logits, atol=1e-6)
    assert json.loads((tmp_path / "adapter_config.json").read_text())["r"] == 8


def test_transformers_loads_the_export_of_full_weights(model_plan, tmp_path):
    plan = model_plan(lora=None)
    module = perturbed(attached(plan))
    adapter.export(module, plan, tmp_path)
    again = load_base(dataclasses.replace(plan, path=str(tmp_path)), device=CPU)
    assert torch.equal(again(IDS).logits, module(IDS).logits)


def test_four_bit_weights_cannot_be_trained_in_full(model_plan):
    with pytest.raises(ModelError, match="lora"):
        attached(model_plan(quantization="nf4", lora=None))


def test_target_modules_that_match_nothing_are_named(model_plan):
    plan = model_plan()
    plan = dataclasses.replace(plan, lora=dataclasses.replace(plan.lora, target_modules=("no_such_layer",)))
    with pytest.raises(ModelError, match=r"no_such_layer.*all-linear"):
        attached(plan)


def test_an_untrained_adapter_is_known_by_its_b(model_plan):
    module = attached(model_plan())
    assert adapter.largest_b(adapter.read(module)) == 0.0
    assert adapter.largest_b(adapter.read(perturbed(module))) > 0.0
    assert adapter.largest_b(adapter.read(attached(model_plan(lora=None)))) == 0.0
