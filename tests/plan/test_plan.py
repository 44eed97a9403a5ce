"""A plan says which steps remain, and which of its facts make it another experiment."""

from __future__ import annotations

import dataclasses

import pytest

from miniverl.plan.plan import Step


def test_a_run_starts_at_step_one_and_at_the_first_prompt(desk):
    steps = list(desk.plan().steps(after=0, cursor=0))
    assert steps[0] == Step(number=1, cursor=0, groups=4)
    assert [step.number for step in steps] == [1, 2, 3, 4, 5]


def test_a_continued_run_starts_behind_the_prompts_that_were_taken(desk):
    # More were taken than kept: the cursor is not the number of steps times the batch.
    steps = list(desk.plan().steps(after=3, cursor=17))
    assert [(step.number, step.cursor, step.groups) for step in steps] == [(4, 17, 4), (5, 21, 4)]


@pytest.mark.parametrize("after", [5, 6])
def test_nothing_remains_of_a_finished_run(desk, after):
    assert list(desk.plan().steps(after=after, cursor=20)) == []


def test_the_digests_are_locked(desk):
    """Changing this makes every recorded run another experiment."""
    plan = dataclasses.replace(desk.plan(), experiment_facts={"optim.lr": 0.001}, execution_facts={"threads": 1})
    assert plan.experiment == "9af5f3ce1e76d06c91eeedf17814c510083391ab40d8aa8fc5915c0330a86e19"
    assert plan.execution == "3da87426a588bc30638223814cd2774f6a6c6db92932d2aaf594d89e1622fec6"


@pytest.mark.parametrize(
    ("facts", "moved", "kept"),
    [("experiment_facts", "experiment", "execution"), ("execution_facts", "execution", "experiment")],
)
def test_each_digest_follows_its_own_facts_in_whatever_order(desk, facts, moved, kept):
    plan = desk.plan()
    known = getattr(plan, facts)
    turned = dataclasses.replace(plan, **{facts: dict(reversed(known.items()))})
    other = dataclasses.replace(plan, **{facts: {**known, "one more": 1}})
    assert getattr(turned, moved) == getattr(plan, moved) != getattr(other, moved)
    assert getattr(other, kept) == getattr(plan, kept)


def test_what_is_no_fact_moves_no_digest(desk):
    plan = desk.plan()
    noted = dataclasses.replace(plan, notes=(*plan.notes, "a row was dropped"), name="another", resume="never")
    assert (noted.experiment, noted.execution) == (plan.experiment, plan.execution)


def test_a_plan_that_is_printed_leaves_its_facts_out(desk):
    assert "facts" not in repr(desk.plan())
