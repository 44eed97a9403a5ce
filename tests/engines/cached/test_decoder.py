"""This file holds the tests of the model's passes against one plain forward pass."""

import numpy as np
import pytest
import torch

from miniverl.engines.cached.decoder import CHUNK, Decoder
from miniverl.errors import ModelError
from tests.engines.tiny import ARCHITECTURES, VOCABULARY, TinyModel, policy

LENGTHS = (1, 2, 9, CHUNK, CHUNK + 1, CHUNK + 60)


@pytest.fixture(params=ARCHITECTURES)
def module(request):
    model = TinyModel(request.param)
    model.load(policy(request.param))
    return model.module


@pytest.fixture
def prompts():
    random = np.random.default_rng(0)
    return [random.integers(0, VOCABULARY, length) for length in LENGTHS]


def next_logits(decoder, prompts):
    cache = decoder.cache(rows=len(prompts), length=CHUNK + 64)
    cache.copy(decoder.prefill(prompts), [(row, row) for row in range(len(prompts))])
    tokens = torch.tensor([int(ids[-1]) for ids in prompts])
    positions = torch.tensor([len(ids) - 1 for ids in prompts])
    return decoder.logits(tokens, positions, cache=cache, length=cache.length)


@torch.inference_mode()
def test_prefill_and_one_token_give_the_logits_of_a_plain_pass(module, prompts):
    decoder = Decoder(module, vocabulary=VOCABULARY)
    found = next_logits(decoder, prompts)
    for row, ids in zip(found, prompts, strict=True):
        plain = module(torch.from_numpy(ids)[None], use_cache=False).logits[0, -1, :VOCABULARY]
        torch.testing.assert_close(row, plain, atol=2e-5, rtol=0)


@torch.inference_mode()
def test_a_prompts_states_are_the_same_bits_whoever_shares_its_prefill(module, prompts):
    decoder = Decoder(module, vocabulary=VOCABULARY)
    together = next_logits(decoder, prompts)
    for row, ids in zip(together, prompts, strict=True):
        group = [ids] * 4  # a lone row rounds differently
        assert torch.equal(next_logits(decoder, group)[0], row)


@torch.inference_mode()
def test_long_prompts_are_fed_in_chunks_and_short_ones_in_one_pass(module, prompts):
    decoder = Decoder(module, vocabulary=VOCABULARY)
    decoder.prefill(prompts[:3])
    assert decoder.passes == 1
    decoder.prefill(prompts)
    assert decoder.passes == 3
    decoder.prefill([prompts[0]])
    assert decoder.passes == 3  # a prompt of one token has nothing before its last


def test_logits_beyond_the_vocabulary_do_not_exist(module):
    with torch.inference_mode():
        decoder = Decoder(module, vocabulary=VOCABULARY)
        logits = decoder.logits(
            torch.zeros(4, dtype=torch.long),
            torch.zeros(4, dtype=torch.long),
            cache=decoder.cache(rows=4, length=8),
            length=8,
        )
    assert logits.shape == (4, VOCABULARY) and logits.dtype == torch.float32


def test_a_head_that_is_not_a_plain_layer_is_refused(module):
    module.lm_head = torch.nn.Sequential(module.lm_head)
    with pytest.raises(ModelError, match="LM head"):
        Decoder(module, vocabulary=VOCABULARY)
