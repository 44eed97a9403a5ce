"""This file holds the tests of grouped attention against heads that are repeated and attended one by one."""

import pytest
import torch

from miniverl.engines.cached.attention import NAME, attend, folded, grouped, together
from tests.engines.tiny import TinyModel


def states(heads, groups, *, positions=1, length=24):
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(3, heads, positions, 16, generator=generator)
    key, value = torch.randn(2, 3, groups, length, 16, generator=generator)
    mask = torch.zeros(3, 1, positions, length)
    for row, end in enumerate((1, 9, length)):
        mask[row, ..., end:] = float("-inf")
    return query, key, value, mask


@pytest.mark.parametrize(("heads", "groups"), [(4, 4), (4, 2), (6, 2), (8, 1)])
@pytest.mark.parametrize(("way", "positions"), [(together, 1), (together, 8), (folded, 1)])
def test_a_head_reads_the_keys_and_values_of_its_group(heads, groups, way, positions):
    query, key, value, mask = states(heads, groups, positions=positions)
    found = way(query, key, value, mask, scaling=0.2)
    assert found.shape == (3, positions, heads, 16)
    for head in range(heads):
        shared = head * groups // heads
        scores = 0.2 * query[:, head].double() @ key[:, shared].double().transpose(-1, -2) + mask[:, 0]
        expected = scores.softmax(-1) @ value[:, shared].double()
        torch.testing.assert_close(found[:, :, head].double(), expected, atol=1e-6, rtol=0)


def test_transformers_is_answered_as_it_asks():
    query, key, value, mask = states(4, 2)
    found, weights = attend(torch.nn.Identity(), query, key, value, mask, scaling=None, dropout=0.0, is_causal=True)
    assert weights is None and torch.equal(found, together(query, key, value, mask, scaling=None))


def test_a_model_attends_so_within_and_as_before_outside():
    config = TinyModel().module.config
    before = config._attn_implementation
    with grouped(config):
        assert config._attn_implementation == NAME
    assert config._attn_implementation == before
