"""This file holds the teacher's shell: it offers what the page calls, and building it costs nothing."""

from actors.teacher import TeacherActor
from miniverl.training.roles import Teacher
from tests.actors.roles import differences


def test_the_shell_answers_every_call_of_the_role():
    assert differences(Teacher, TeacherActor) == []


def test_nothing_is_built_before_the_start(plan):
    actor = TeacherActor(plan.teacher)
    assert not hasattr(actor, "_teacher") and actor._vitals.role == "teacher"
