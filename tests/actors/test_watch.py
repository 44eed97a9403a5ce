"""This file holds how the controller notices that a role fell silent."""

import pytest

from actors.vitals import CONTINUE, STOP, Vitals
from actors.watch import SILENCE, Watch


def beat(watch: Watch, role: str) -> str:
    return watch.beat(Vitals(role).pulse())


def test_a_role_without_pulses_is_lost_after_so_many_looks():
    watch = Watch()
    beat(watch, "trainer")
    assert [watch.look() for _ in range(SILENCE)] == [None] * SILENCE
    assert watch.look() == "trainer"


def test_one_pulse_is_enough_to_live_on():
    watch = Watch()
    beat(watch, "trainer"), beat(watch, "teacher")
    for _ in range(SILENCE):
        watch.look()
    beat(watch, "teacher")
    assert watch.look() == "trainer"
    beat(watch, "trainer")
    assert watch.look() is None


@pytest.mark.parametrize("role", ["trainer", "journal"])
def test_a_role_never_heard_of_is_not_missed(role):
    watch = Watch()
    assert all(watch.look() is None for _ in range(2 * SILENCE))


def test_looks_not_taken_do_not_count():
    watch = Watch()
    beat(watch, "trainer")
    for _ in range(SILENCE):
        watch.look()
    watch.forgive()
    assert watch.look() is None


def test_after_a_stop_every_pulse_is_told():
    watch = Watch()
    assert beat(watch, "rollout") == CONTINUE and not watch.stopping()
    watch.stop()
    assert beat(watch, "rollout") == STOP and watch.stopping()
