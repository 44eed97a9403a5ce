"""This file holds the tests of the key/value memory: where states are written and what is read."""

import pytest
import torch

from miniverl.engines.cached.cache import ALIGN, RowCache, aligned
from tests.engines.tiny import WINDOW, TinyModel


@pytest.fixture
def cache():
    return RowCache(TinyModel().module.config, rows=4, length=20, dtype=torch.float32, device=torch.device("cpu"))


def states(rows, width, value):
    return torch.full((rows, 2, width, 16), float(value))


def test_lengths_are_rounded_up():
    assert [aligned(n) for n in (0, 1, 8, 9)] == [0, ALIGN, ALIGN, 2 * ALIGN]


def test_each_row_writes_at_its_own_position(cache):
    cache.place(torch.tensor([[3], [9]]), length=16)
    keys, values = cache.update(states(2, 1, 5), states(2, 1, 7), 1)
    assert keys.shape == values.shape == (2, 2, 16, 16)
    assert [row.nonzero()[:, 1].unique().tolist() for row in keys] == [[3], [9]]
    assert keys.sum() == 5 * 2 * 2 * 16 and values.sum() == 7 * 2 * 2 * 16


def test_layers_do_not_share_memory(cache):
    cache.place(torch.tensor([[3]]), length=8)
    cache.update(states(1, 1, 5), states(1, 1, 5), 0)
    cache.place(torch.tensor([[4]]), length=8)
    keys, _ = cache.update(states(1, 1, 1), states(1, 1, 1), 1)
    assert keys[0, 0, :, 0].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]


def test_a_position_sees_itself_and_what_came_before(cache):
    mask = cache.place(torch.tensor([[0, 1], [6, 7]]), length=8)
    assert mask.shape == (2, 1, 2, 8)
    assert (mask == 0).sum(-1).flatten().tolist() == [1, 2, 7, 8]
    assert set(mask.unique().tolist()) == {0.0, float("-inf")}


def test_a_layer_with_a_window_does_not_see_beyond_it():
    config = TinyModel("gemma3").module.config
    cache = RowCache(config, rows=4, length=40, dtype=torch.float32, device=torch.device("cpu"))
    masks = cache.place(torch.tensor([[3], [30]]), length=32)
    seen = {kind: (mask == 0).sum(-1).flatten().tolist() for kind, mask in masks.items()}
    assert seen == {"sliding_attention": [4, WINDOW], "full_attention": [4, 31]}
    assert (masks["sliding_attention"][1, 0, 0] == 0).nonzero().flatten().tolist() == list(range(31 - WINDOW, 31))


def test_rows_are_copied_whole_within_and_between_caches(cache):
    cache.place(torch.tensor([[1], [2]]), length=8)
    cache.update(states(2, 1, 3), states(2, 1, 3), 0)
    cache.copy(cache, [(1, 3)])
    longer = RowCache(TinyModel().module.config, rows=2, length=40, dtype=torch.float32, device=torch.device("cpu"))
    longer.copy(cache, [(3, 0), (0, 1)])
    longer.place(torch.tensor([[30], [30]]), length=8)
    keys, _ = longer.update(states(2, 1, 0), states(2, 1, 0), 0)
    assert keys[:, 0, :3, 0].tolist() == [[0, 0, 3], [0, 3, 0]]
