"""This file holds the tests of what engines demand of their requests."""

import pytest

from miniverl.engines.intake import whole_groups
from miniverl.errors import ContractError
from tests.engines.tiny import requests


def test_requests_are_cut_into_their_groups():
    assert [len(group) for group in whole_groups(requests(3, 4, samples=2))] == [2, 2]
    assert whole_groups(()) == []


@pytest.mark.parametrize("cut", [slice(0, 3), slice(1, 4), slice(None, None, -1)])
def test_a_group_that_is_incomplete_or_out_of_order_is_refused(cut):
    with pytest.raises(ContractError, match="together and in order"):
        whole_groups(requests(3, samples=4)[cut])


def test_groups_that_are_mixed_up_are_refused():
    first, second, third, fourth = requests(3, 4, samples=2)
    with pytest.raises(ContractError, match="together and in order"):
        whole_groups((first, third, second, fourth))


def test_two_samplings_in_one_call_are_refused():
    with pytest.raises(ContractError, match="once per sampling"):
        whole_groups((*requests(3), *requests(3, 4, temperature=0.5)[4:]))


def test_a_prompt_that_leaves_no_room_is_refused_with_the_numbers():
    assert whole_groups(requests(8), max_length=20)
    with pytest.raises(ContractError, match=r"= 21: .* 20 tokens"):
        whole_groups(requests(9), max_length=20)
