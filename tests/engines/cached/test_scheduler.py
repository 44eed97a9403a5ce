"""This file holds the tests of the scheduler: who sits where, with strings in the place of tensors."""

from hypothesis import given, settings
from hypothesis import strategies as st

from miniverl.engines.cached.scheduler import PREFILL_TOKENS, Scheduler
from tests.engines.tiny import requests


def groups_of(*lengths, samples=2):
    made = requests(*lengths, samples=samples)
    return [made[start : start + samples] for start in range(0, len(made), samples)]


def scheduler(groups, *, slots, prefilled=None):
    prefilled = [] if prefilled is None else prefilled

    def prefill(prompts):
        prefilled.append(len(prompts))
        return f"batch {len(prefilled)}"

    return Scheduler(groups, slots=slots, prefill=prefill)


def test_a_finished_slot_is_refilled_at_once():
    plan = scheduler(groups_of(3, 3, 3), slots=4)
    assert [slot for slot, _ in plan.refill()] == [0, 1, 2, 3]
    plan.finish([(2, "sample")])
    [(slot, admission)] = plan.refill()
    assert slot == 2 and admission.request.cursor == 2


def test_when_nobody_waits_the_last_rows_close_the_gaps():
    plan = scheduler(groups_of(3, 3, 3, 3), slots=8)
    plan.refill()
    plan.finish([(0, "a"), (3, "b"), (7, "c"), (5, "d")])
    assert plan.refill() == []
    assert plan.close_gaps() == [(6, 0), (4, 3)]
    assert plan.occupied() == [0, 1, 2, 3] and plan.live == 4


def test_a_group_is_complete_when_all_its_samples_are_in_order_of_sample():
    plan = scheduler(groups_of(3, 3), slots=4)
    plan.refill()
    assert plan.finish([(1, "second")]) == []
    [group] = plan.finish([(0, "first")])
    assert group.in_order() == ["first", "second"]


def test_every_prompt_is_prefilled_once_by_a_budget_of_tokens_and_only_when_needed():
    prefilled = []
    third = PREFILL_TOKENS // 3
    plan = scheduler(groups_of(5, 9, third, 4, third + 1, 7, PREFILL_TOKENS + 1, 3), slots=4, prefilled=prefilled)
    plan.refill()
    assert prefilled == [3]  # a fourth of that length would pass the budget
    while plan.unfinished:
        plan.finish([(slot, "sample") for slot in plan.occupied()])
        plan.refill()
    assert prefilled == [3, 2, 1, 1, 1]  # one prompt may pass it alone


def test_the_reach_follows_the_longest_row():
    plan = scheduler(groups_of(10, 30), slots=4)
    plan.refill()
    assert plan.advance(1) == 30  # 29 tokens prefilled, the 30th fed
    assert plan.advance(2) == 32
    plan.finish([(2, "long"), (3, "long")])
    assert plan.advance(1) == 13


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=9),
    slots=st.integers(1, 9),
    dice=st.randoms(use_true_random=False),
)
def test_every_sample_is_served_once_and_live_rows_stay_in_front(sizes, slots, dice):
    made = [requests(3 + i, samples=size)[:size] for i, size in enumerate(sizes)]
    plan = scheduler(made, slots=slots)
    seats, done = {}, []
    while plan.unfinished:
        seats.update({slot: admission.request for slot, admission in plan.refill()})
        for origin, target in plan.close_gaps():
            seats[target] = seats.pop(origin)
        occupied = plan.occupied()
        assert occupied == list(range(len(occupied))) and len(occupied) <= plan.live
        finished = [slot for slot in occupied if dice.random() < 0.4]
        done += plan.finish([(slot, seats[slot]) for slot in finished])
    assert sorted(id(request) for group in done for request in group.in_order()) == sorted(
        id(request) for group in made for request in group
    )
    assert all(group.in_order() == list(group.requests) for group in done)
