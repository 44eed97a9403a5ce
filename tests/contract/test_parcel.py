"""Parcels: their borders follow from order and token counts alone, so that a run continued cuts where it cut before."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniverl.contract.group import Group
from miniverl.contract.parcel import DROPPED, KEPT, SURPLUS, Parcel, padded_tokens, parcels
from miniverl.errors import ContractError
from tests.contract.drawn import crossed, of_shape

shapes = st.tuples(st.integers(1, 6), st.lists(st.integers(1, 6), min_size=1, max_size=4).map(tuple))
streams = st.lists(shapes, max_size=12).map(
    lambda drawn: [of_shape(cursor, prompt_tokens=p, lengths=lengths) for cursor, (p, lengths) in enumerate(drawn)]
)
budgets = st.integers(1, 120)


def cut(groups: list[Group], budget: int) -> list[tuple[int, ...]]:
    """The cursors of every parcel."""
    return [tuple(group.cursor for group in part) for part in parcels(groups, budget=budget)]


@given(streams, budgets)
def test_every_group_travels_once_and_in_order(groups, budget):
    assert [cursor for part in cut(groups, budget) for cursor in part] == list(range(len(groups)))


@given(streams, budgets)
def test_a_parcel_keeps_to_the_budget_unless_it_is_one_group(groups, budget):
    for part in parcels(groups, budget=budget):
        assert len(part) == 1 or padded_tokens(part) <= budget


@given(streams, budgets)
def test_a_parcel_closes_only_because_the_next_group_would_not_fit(groups, budget):
    parts = list(parcels(groups, budget=budget))
    for part, following in pairwise(parts):
        assert padded_tokens((*part, following[0])) > budget


@given(streams, budgets, st.data())
def test_a_stream_cut_at_a_border_is_cut_the_same_on_both_sides(groups, budget, data):
    whole = cut(groups, budget)
    border = data.draw(st.integers(0, len(whole)))
    taken = sum(len(part) for part in whole[:border])
    assert cut(groups[:taken], budget) + cut(groups[taken:], budget) == whole


@given(streams, budgets, st.data())
def test_groups_still_to_come_move_no_border_behind_them(groups, budget, data):
    known = data.draw(st.integers(0, len(groups)))
    settled = cut(groups[:known], budget)[:-1]
    assert cut(groups, budget)[: len(settled)] == settled


def test_a_parcel_leaves_as_soon_as_it_is_full():
    seen = []

    def stream():
        for cursor in range(4):
            seen.append(cursor)
            yield of_shape(cursor, prompt_tokens=2, lengths=(2, 2))

    first = next(parcels(stream(), budget=16))
    assert ([group.cursor for group in first], seen) == ([0, 1], [0, 1, 2])


def test_a_budget_counts_the_rectangle_around_all_rows():
    long, short = of_shape(0, prompt_tokens=5, lengths=(4,)), of_shape(1, prompt_tokens=1, lengths=(1, 2))
    assert padded_tokens((long, short)) == 3 * 9
    assert cut([long, short], 27) == [(0, 1)]
    assert cut([long, short], 26) == [(0,), (1,)]


def test_the_borders_of_a_known_stream_are_locked():
    """Changing this changes how every recorded run is cut, and with it the order of its sums."""
    lengths = [(3, 1), (2, 2), (6, 1), (1, 1), (1, 1), (2, 5)]
    groups = [of_shape(cursor, prompt_tokens=3, lengths=rows) for cursor, rows in enumerate(lengths)]
    assert cut(groups, 30) == [(0, 1), (2,), (3, 4), (5,)]


def parcel(*fates: str) -> Parcel:
    groups = tuple(of_shape(cursor, prompt_tokens=2, lengths=(1 + cursor, 1)) for cursor in range(len(fates)))
    return Parcel(step=1, groups=groups, fates=fates)


def test_only_kept_groups_are_counted():
    mixed = parcel(KEPT, DROPPED, KEPT, SURPLUS)
    assert [group.cursor for group in mixed.kept] == [0, 2]
    assert (mixed.rows, mixed.lengths.tolist(), mixed.response_tokens) == (4, [1, 1, 3, 1], 6)


@pytest.mark.parametrize("cursors", [(), (1, 0), (2, 2)], ids=["none", "backwards", "twice"])
def test_groups_out_of_cursor_order_are_no_parcel(cursors):
    groups = tuple(of_shape(cursor, prompt_tokens=1, lengths=(1,)) for cursor in cursors)
    with pytest.raises(ContractError, match="strict cursor order"):
        Parcel(step=1, groups=groups, fates=(KEPT,) * len(groups))


@pytest.mark.parametrize("fates", [(), (KEPT, KEPT)])
def test_a_group_without_its_one_fate_is_no_parcel(fates):
    with pytest.raises(ContractError, match="one fate each"):
        Parcel(step=1, groups=(of_shape(0, prompt_tokens=1, lengths=(1,)),), fates=fates)


def test_a_parcel_is_the_same_in_another_process():
    sent = parcel(KEPT, DROPPED)
    received = crossed(sent)
    assert [group.digest for group in received.groups] == [group.digest for group in sent.groups]
    assert (received.step, received.fates) == (sent.step, sent.fates)
