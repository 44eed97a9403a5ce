"""The order: a pure function of seed and cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniverl.contract.prompt import Prompt
from miniverl.data.order import PromptOrder

sizes = st.integers(1, 40)
seeds = st.integers(0, 2**62)


def order(size, *, seed=0, shuffle=True):
    prompts = [Prompt(row=row, ids=[row + 1], data_source="", ground_truth=None) for row in range(size)]
    return PromptOrder(prompts, shuffle=shuffle, seed=seed)


def rows(taken):
    return [prompt.row for _, prompt in taken]


@given(sizes, seeds, st.integers(0, 5), st.booleans())
def test_every_epoch_visits_each_prompt_once(size, seed, epoch, shuffle):
    assert sorted(rows(order(size, seed=seed, shuffle=shuffle).take(epoch * size, size))) == list(range(size))


@given(sizes, seeds, st.integers(0, 100), st.integers(0, 50), st.integers(0, 50))
def test_pieces_join_whatever_was_asked_before(size, seed, start, first, second):
    walk = order(size, seed=seed)
    tail = walk.take(start + first, second)  # asked first, and over an epoch's border
    whole = walk.take(start, first) + tail
    assert [(at, prompt.row) for at, prompt in whole] == [
        (at, prompt.row) for at, prompt in order(size, seed=seed).take(start, first + second)
    ]
    assert [at for at, _ in whole] == list(range(start, start + first + second))


def test_without_shuffling_prompts_come_in_file_order():
    assert rows(order(3, shuffle=False).take(2, 5)) == [2, 0, 1, 2, 0]


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    walk = order(30)
    assert rows(walk.take(0, 30)) != rows(walk.take(30, 30))
    assert rows(walk.take(0, 30)) != rows(order(30, seed=1).take(0, 30))
    assert rows(walk.take(0, 30)) != list(range(30))


def test_the_order_of_a_seed_never_changes():
    """Changing this changes training: a continued run would walk another way."""
    assert rows(order(8, seed=7).take(0, 16)) == [5, 3, 6, 4, 2, 0, 7, 1, 3, 4, 7, 1, 6, 2, 5, 0]


def test_an_empty_prompt_set_is_our_own_mistake():
    with pytest.raises(AssertionError, match="refused when it is read"):
        order(0)
