from dataclasses import replace

import pytest

from miniverl.contract.parcel import KEPT
from miniverl.errors import Stopped
from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles


@pytest.fixture
def run(plan_for):
    plan = plan_for()
    roles = local_roles(plan)
    yield assemble(plan, roles, stop=lambda: False, say=lambda event: None)
    roles.journal.release()


@pytest.fixture
def gathered(run):
    """One step of the run: the step, its policy, its parcels."""
    step = next(run.steps())
    policy = run.roles.trainer.policy()
    run.roles.rollout.synchronize(policy)
    return step, policy, list(run.gather(step, policy.snapshot))


def test_a_step_is_gathered_whole_and_in_cursor_order(gathered):
    step, _, parcels = gathered
    cursors = [group.cursor for parcel in parcels for group in parcel.groups]
    assert cursors == list(range(step.cursor, step.cursor + step.groups))
    assert all(parcel.fates == (KEPT,) * len(parcel.groups) for parcel in parcels)
    assert len(parcels) > 1


def test_nothing_is_handed_on_before_it_is_durable(run):
    step = next(run.steps())
    policy = run.roles.trainer.policy()
    run.roles.rollout.synchronize(policy)
    handed_on = 0
    for parcel in run.gather(step, policy.snapshot):
        handed_on += len(parcel.groups)
        assert run.roles.journal.facts().rows == handed_on


def test_recorded_groups_come_back_in_the_same_parcels_and_are_not_generated_again(run, gathered):
    step, policy, parcels = gathered
    before = run.roles.rollout.metrics()["generated_tokens"]
    again = list(run.gather(step, policy.snapshot))
    assert [[g.digest for g in p.groups] for p in again] == [[g.digest for g in p.groups] for p in parcels]
    assert run.roles.rollout.metrics()["generated_tokens"] == before


def test_a_half_recorded_step_is_completed_to_the_same_groups(run, gathered, plan_for):
    _, _, parcels = gathered
    plan = plan_for("half")
    roles = local_roles(plan)
    half = assemble(plan, roles, stop=lambda: False, say=lambda event: None)
    step = next(half.steps())
    policy = roles.trainer.policy()
    roles.rollout.synchronize(policy)
    stream = half.gather(step, policy.snapshot)
    next(stream)
    stream.close()
    assert 0 < roles.journal.facts().rows < step.groups
    again = list(half.gather(step, policy.snapshot))
    roles.journal.release()
    assert [[g.digest for g in p.groups] for p in again] == [[g.digest for g in p.groups] for p in parcels]


def test_a_stop_is_obeyed_between_two_parcels(run):
    step = next(run.steps())
    policy = run.roles.trainer.policy()
    run.roles.rollout.synchronize(policy)
    stops = iter([False, True])
    stream = replace(run.gather, stop=lambda: next(stops))(step, policy.snapshot)
    recorded = len(next(stream).groups)
    with pytest.raises(Stopped):
        next(stream)
    assert run.roles.journal.facts().rows == recorded
