import dataclasses

import pytest
import torch

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.errors import IdentityError
from miniverl.models import adapter
from miniverl.models.dequantize import dequantized_digest
from miniverl.models.load import load_base
from miniverl.models.mirror import Mirror

CPU = torch.device("cpu")
IDS = torch.arange(1, 17)[None]


def trained(plan):
    """A trainer's module with an adapter that is not zero, and the policy it would send."""
    module = load_base(plan, device=CPU)
    base_digest = dequantized_digest(module)
    module = adapter.attach(module, plan, seed=3).eval()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in adapter.trainable(module).values():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    tensors = adapter.read(module)
    snapshot = PolicySnapshot(
        version=1, model_id=plan.id, model_revision="r", tokenizer_digest="t", adapter_manifest="m",
        tensor_digest=tensors_digest(tensors), base_digest=base_digest, dtype="float32",
        quantization=plan.quantization, backend="hf_cached", backend_version="", profile="native", experiment="e",
    )  # fmt: skip
    return module, Policy(snapshot=snapshot, tensors=tensors)


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_the_mirror_computes_the_trainers_own_policy(model_plan, quantization):
    module, policy = trained(model_plan(quantization=quantization))
    mirror = Mirror(model_plan(quantization=quantization), device=CPU)
    mirror.load(policy)
    assert torch.allclose(mirror.module(IDS).logits, module(IDS).logits, atol=2e-5)


def test_full_weights_are_mirrored_whole(model_plan):
    module, policy = trained(model_plan(lora=None))
    mirror = Mirror(model_plan(lora=None), device=CPU)
    mirror.load(policy)
    assert torch.equal(mirror.module(IDS).logits, module(IDS).logits)


def test_a_student_in_four_bits_never_samples_from_the_original_weights(model_plan):
    module, policy = trained(model_plan(quantization="nf4"))
    original = adapter.attach(load_base(model_plan(), device=CPU), model_plan(), seed=0).eval()
    adapter.write(original, dict(policy.tensors))
    assert (original(IDS).logits - module(IDS).logits).abs().max() > 1e-2
    with pytest.raises(IdentityError, match="dequantized base"):
        Mirror(model_plan(), device=CPU).load(policy)


def test_bytes_that_are_not_the_ones_named_are_refused(model_plan):
    _, policy = trained(model_plan())
    name = next(iter(policy.tensors))
    spoiled = dataclasses.replace(policy, tensors={**policy.tensors, name: policy.tensors[name] + 1e-6})
    with pytest.raises(IdentityError, match=r"policy\.tensors"):
        Mirror(model_plan(), device=CPU).load(spoiled)


def test_eight_refreshes_leave_no_trace(model_plan):
    _, policy = trained(model_plan(quantization="nf4"))
    mirror = Mirror(model_plan(quantization="nf4"), device=CPU)
    mirror.load(policy)
    first = mirror.module(IDS).logits
    other = {name: array * 2 for name, array in policy.tensors.items()}
    snapshot = dataclasses.replace(policy.snapshot, version=2, tensor_digest=tensors_digest(other))
    for _ in range(8):
        mirror.load(Policy(snapshot=snapshot, tensors=other))
        assert not torch.equal(mirror.module(IDS).logits, first)
        mirror.load(policy)
    assert torch.equal(mirror.module(IDS).logits, first)


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_the_effect_of_an_adapter_is_zero_until_it_does_something(model_plan, quantization):
    plan = model_plan(quantization=quantization)
    mirror = Mirror(plan, device=CPU)
    assert mirror.adapter_effect() == 0.0
    mirror.load(trained(plan)[1])
    assert mirror.adapter_effect() > 1e-3


def test_full_weights_have_no_adapter_to_judge(model_plan):
    assert Mirror(model_plan(lora=None), device=CPU).adapter_effect() is None
