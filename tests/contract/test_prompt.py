"""Prompts are named by their ids alone; a group by its place in the run and its prompt."""

from __future__ import annotations

import pytest

from miniverl.contract.prompt import Prompt, group_id
from miniverl.errors import ContractError
from tests.contract.drawn import crossed, prompt


def test_the_digest_and_the_group_id_are_locked():
    """Changing either renames every group, and with that moves every seed."""
    assert prompt(5, 6, 7).digest == "2e4c4603cb0dea8636f8e802bfa0f24caef5f9943377f91d89fd6fbd9577cd1c"
    assert group_id(4, prompt(5, 6, 7)) == "000000000004-2e4c4603cb0d"


def test_two_rows_with_the_same_ids_are_one_prompt():
    assert prompt(5, 6, row=1, ground_truth="1").digest == prompt(5, 6, row=9, ground_truth=None).digest
    assert prompt(5, 6).digest != prompt(6, 5).digest


def test_a_prompt_that_comes_again_makes_another_group():
    assert group_id(0, prompt(5)) != group_id(1, prompt(5))


def test_group_ids_sort_in_cursor_order():
    names = [group_id(cursor, prompt(5)) for cursor in (9, 10, 99_999, 100_000)]
    assert names == sorted(names)


@pytest.mark.parametrize("ids", [[], [[5, 6]]], ids=["empty", "two axes"])
def test_a_prompt_is_one_non_empty_row(ids):
    with pytest.raises(ContractError, match=r"Prompt\.ids"):
        Prompt(row=0, ids=ids, data_source="sums", ground_truth=None)


def test_the_ids_cannot_be_written_to_here_or_in_another_process():
    for owner in (prompt(5, 6), crossed(prompt(5, 6))):
        with pytest.raises(ValueError, match="read-only"):
            owner.ids[0] = 9


def test_a_prompt_is_the_same_in_another_process():
    sent, received = prompt(5, 6), crossed(prompt(5, 6))
    assert received.digest == sent.digest
    assert (received.row, received.data_source, received.ground_truth) == (0, "sums", "42")
