"""This file holds the border of an actor: what a call that fails looks like from outside."""

import pickle

import pytest

from actors.shell import CONTINUES, Shell, served
from miniverl.errors import IdentityError, RoleError, Stopped


class Oven(Shell):
    def __init__(self) -> None:
        super().__init__("oven")

    @served
    def bake(self, error: Exception | None = None) -> str:
        if error is not None:
            raise error
        return "bread"

    @served
    def loaves(self, count: int):
        yield from range(count)
        raise ZeroDivisionError("no flour")


def test_a_call_returns_what_the_method_returns_and_is_counted():
    oven = Oven()
    assert oven.bake() == "bread"
    assert oven._vitals.pulse().calls == 1


def test_an_unforeseen_error_names_role_and_call_and_keeps_its_traceback():
    with pytest.raises(RoleError) as caught:
        Oven().bake(ZeroDivisionError("no flour"))
    assert caught.value.field == "oven"
    assert "bake failed with ZeroDivisionError: no flour" in caught.value.problem and caught.value.fix == CONTINUES
    there = pickle.loads(pickle.dumps(caught.value))
    assert "raise error" in there.__notes__[0], "the traceback crosses the border of a process"


@pytest.mark.parametrize("error", [IdentityError("policy", problem="is another", fix="synchronize"), Stopped()])
def test_errors_made_for_users_pass_as_they_are(error):
    with pytest.raises(type(error)) as caught:
        Oven().bake(error)
    assert caught.value is error


def test_a_stream_hands_over_each_item_before_it_fails():
    stream = Oven().loaves(2)
    assert [next(stream), next(stream)] == [0, 1]
    with pytest.raises(RoleError, match="loaves failed"):
        next(stream)


def test_a_stream_advances_the_role_with_every_item():
    oven = Oven()
    stream = oven.loaves(2)
    next(stream)
    before = oven._vitals.pulse()
    next(stream)
    assert oven._vitals.pulse().progress > before.progress and before.phase == "loaves"
