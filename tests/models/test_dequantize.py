import torch

from miniverl.models.dequantize import dequantize, dequantized_digest, plain_digest, quantized_layers
from miniverl.models.load import load_base

CPU = torch.device("cpu")


def test_plain_layers_compute_what_the_four_bit_layers_computed(model_plan):
    module = load_base(model_plan(quantization="nf4"), device=CPU)
    name, layer = next(iter(quantized_layers(module)))
    inputs = torch.randn(5, layer.in_features, generator=torch.Generator().manual_seed(0))
    expected = layer(inputs)
    plain = dequantize(module).get_submodule(name)
    assert type(plain) is torch.nn.Linear
    assert torch.allclose(plain(inputs), expected, atol=1e-6)


def test_the_digest_is_the_same_before_and_after_dequantizing(model_plan):
    module = load_base(model_plan(quantization="nf4"), device=CPU)
    names = frozenset(name for name, _ in quantized_layers(module))
    before = dequantized_digest(module)
    dequantize(module)
    assert plain_digest(module, names) == before
    with torch.no_grad():
        module.get_submodule(min(names)).weight[0, 0] += 1e-3
    assert plain_digest(module, names) != before


def test_a_model_that_is_not_quantized_has_no_digest(model_plan):
    assert dequantized_digest(load_base(model_plan(), device=CPU)) == ""


def test_the_dequantized_weights_are_not_the_original_ones(model_plan):
    original = load_base(model_plan(), device=CPU)
    module = load_base(model_plan(quantization="nf4"), device=CPU)
    names = [name for name, _ in quantized_layers(module)]
    dequantize(module)
    assert not any(torch.equal(module.get_submodule(n).weight, original.get_submodule(n).weight) for n in names)
