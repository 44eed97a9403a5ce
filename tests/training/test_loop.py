"""The page under deaths: whatever call of it is cut short, the next run ends with the bytes of the untouched one."""

from __future__ import annotations

import dataclasses

import pytest

from miniverl.errors import MiniverlError, Stopped
from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles
from miniverl.training.loop import train
from tests.finished import bytes_of, finish


class Failing:
    """A real role that fails once, before or after the given call of one method, as a killed one would."""

    class Killed(MiniverlError):
        def __init__(self):
            super().__init__("role", problem="killed", fix="start again")

    def __init__(self, role, method: str, *, call: int, after: bool):
        self._role, self._method, self._left, self._after = role, method, call, after

    def __getattr__(self, name):
        real = getattr(self._role, name)
        if name != self._method:
            return real

        def call(*arguments):
            self._left -= 1
            if self._left == 0 and not self._after:
                raise self.Killed
            result = real(*arguments)
            if self._left == 0:
                raise self.Killed
            return result

        return call


BEFORE, AFTER = False, True
DEATHS = [
    ("rollout", "synchronize", 2, AFTER), ("teacher", "score", 3, BEFORE), ("journal", "append", 2, BEFORE),
    ("journal", "append", 5, AFTER), ("trainer", "begin", 2, AFTER), ("trainer", "add", 4, AFTER),
    ("trainer", "update", 3, AFTER), ("journal", "close", 1, BEFORE), ("journal", "close", 3, AFTER),
    ("trainer", "save", 1, AFTER), ("journal", "commit", 1, BEFORE), ("journal", "commit", 1, AFTER),
    ("journal", "record_evaluation", 3, BEFORE), ("journal", "note", 2, AFTER), ("trainer", "export", 1, AFTER),
]  # fmt: skip
"""Role, method, which call of it, and whether death comes before the call has its effect or after."""


@pytest.mark.slow
@pytest.mark.parametrize(("role", "method", "call", "after"), DEATHS, ids=str)
def test_a_death_at_any_call_of_the_page_costs_nothing(plan_for, untouched, role, method, call, after):
    plan = plan_for("died")
    roles = local_roles(plan)
    failing = Failing(getattr(roles, role), method, call=call, after=after)
    run = assemble(plan, dataclasses.replace(roles, **{role: failing}), stop=lambda: False, say=lambda event: None)
    with pytest.raises(Failing.Killed):
        train(run)
    roles.journal.release()
    roles = finish(plan)
    assert bytes_of(plan) == untouched


def test_a_teacher_that_fails_never_lets_the_update_learn_from_the_rest(plan_for):
    plan = plan_for("failed-teacher")
    roles = local_roles(plan)
    before = roles.trainer.policy().snapshot.tensor_digest
    failing = dataclasses.replace(roles, teacher=Failing(roles.teacher, "score", call=2, after=False))
    with pytest.raises(Failing.Killed):
        train(assemble(plan, failing, stop=lambda: False, say=lambda event: None))
    assert roles.trainer.policy().snapshot.tensor_digest == before
    assert roles.journal.reports() == ()
    roles.journal.release()


def test_a_stop_during_an_evaluation_costs_nothing(plan_for, untouched):
    plan = plan_for("stopped")
    roles = local_roles(plan)

    class Stopping:
        """The rollout, told to stop while the student answers after step 2."""

        def __getattr__(self, name):
            return getattr(roles.rollout, name)

        def generate(self, requests):
            if requests[0].sampling.greedy and roles.trainer.policy().snapshot.version == 2:
                raise Stopped
            return roles.rollout.generate(requests)

    run = assemble(plan, dataclasses.replace(roles, rollout=Stopping()), stop=lambda: False, say=lambda event: None)
    with pytest.raises(Stopped):
        train(run)
    run.save_after_stop()
    roles.journal.release()
    finish(plan)
    assert bytes_of(plan) == untouched
