"""This file holds how Ray's wrapping comes off an error."""

from ray.exceptions import ActorDiedError, RayTaskError

from actors.outcome import lost, unwrapped
from miniverl.errors import RoleError, Stopped, TrainingError


def wrapped(cause: Exception) -> RayTaskError:
    """As Ray hands it to whoever waits for the call."""
    return RayTaskError("score", "the traceback", cause).as_instanceof_cause()


def test_our_errors_come_out_as_they_were_raised():
    signal_lost = TrainingError("models.teacher", problem="no signal", fix="check it")
    assert unwrapped(wrapped(signal_lost), role="teacher", call="score") is signal_lost
    assert isinstance(unwrapped(wrapped(Stopped()), role="rollout", call="generate"), Stopped)


def test_an_error_that_passed_through_two_calls_is_still_itself():
    signal_lost = TrainingError("models.teacher", problem="no signal", fix="check it")
    assert unwrapped(wrapped(wrapped(signal_lost)), role="trainer", call="add") is signal_lost


def test_any_other_error_names_the_role_and_the_call():
    error = unwrapped(wrapped(KeyError("weights")), role="trainer", call="add")
    assert isinstance(error, RoleError) and error.field == "trainer"
    assert "add failed with KeyError: 'weights'" in error.problem and "the traceback" in error.__notes__[0]


def test_a_death_that_reached_another_call_is_not_mistaken_for_our_error():
    error = unwrapped(wrapped(ActorDiedError()), role="trainer", call="add")
    assert isinstance(error, RoleError) and "ActorDiedError" in error.problem


def test_a_lost_role_says_that_the_same_command_continues():
    assert "the same command continues" in str(lost("journal", "is gone"))
