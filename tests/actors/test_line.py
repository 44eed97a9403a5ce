"""This file holds the way from the controller to a role, over a real Ray."""

import pytest
import ray

from actors import line as lines_of
from actors.line import Line
from actors.post import Post, Promise
from actors.watch import SILENCE, Watch
from miniverl.errors import RoleError, TrainingError
from tests.actors.lines import Listener, Worker

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def actor(attached):
    kind = ray.remote(Worker)
    made = []

    def make(role: str = "worker"):
        made.append(kind.options(num_cpus=0.1).remote(role))
        return made[-1]

    yield make
    for handle in made:
        ray.kill(handle)


@pytest.fixture(scope="module")
def worker(actor):
    return actor()


@pytest.fixture
def post():
    return Post(Watch())


@pytest.fixture
def line(worker, post):
    return Line("worker", worker, post)


def test_a_call_returns_its_value_and_is_a_message(line, post):
    assert line.call("echo", "bread") == "bread"
    assert post.messages == 1


def test_a_stream_gives_each_item(line):
    assert list(line.stream("count", 3)) == [0, 1, 2]


def test_an_error_made_for_users_arrives_as_itself(line):
    with pytest.raises(TrainingError, match="gives no signal") as caught:
        line.call("fail")
    assert type(caught.value) is TrainingError


def test_a_mistake_of_ours_names_the_role_and_keeps_the_traceback(line):
    with pytest.raises(RoleError, match="break_down failed with ZeroDivisionError") as caught:
        line.call("break_down")
    assert "a mistake of ours" in caught.value.__notes__[0]


def test_a_call_beyond_its_deadline_names_role_and_call(line, worker, monkeypatch):
    monkeypatch.setitem(lines_of.DEADLINES, "sleep", 0.1)
    monkeypatch.setattr(lines_of, "LOOK", 0.1)
    with pytest.raises(RoleError, match="sleep has not ended within"):
        line.call("sleep", 1.0)


def test_a_dead_role_is_named(actor, post):
    with pytest.raises(RoleError, match="its process died during die") as caught:
        Line("rollout", actor(), post).call("die")
    assert caught.value.field == "rollout" and "the same command continues" in caught.value.fix


def test_a_promise_settles_into_the_value_or_the_error_of_its_source(line, post):
    good = line.promise("echo", 1)
    good.settle()
    failed = line.promise("fail")
    skipped = line.promise("echo", failed.reference, source=failed)
    with pytest.raises(TrainingError, match="gives no signal"):
        skipped.settle()


def test_a_death_is_blamed_on_the_role_that_died_not_on_the_one_that_waited(actor, worker, post):
    teacher = Line("teacher", actor(), post)
    targets = teacher.promise("die")
    added = Line("trainer", worker, post).promise("echo", targets.reference, source=targets)
    with pytest.raises(RoleError) as caught:
        added.settle()
    assert caught.value.field == "teacher"


def test_calls_keep_their_order_when_the_argument_of_an_early_one_is_late(actor, post):
    slow, receiver = Line("teacher", actor(), post), Line("trainer", actor(), post)
    late = slow.promise("sleep", 0.3)
    receiver.promise("echo", late.reference)
    receiver.promise("echo", "second")
    assert receiver.call("seen") == [0.3, "second"]


def test_while_one_role_is_waited_for_the_failure_of_another_is_seen(line, actor, post, monkeypatch):
    monkeypatch.setattr(lines_of, "LOOK", 0.1)
    post.remember(Line("teacher", actor(), post).promise("fail"))
    with pytest.raises(TrainingError, match="gives no signal"):
        line.call("sleep", 20.0)


def test_a_role_that_stands_still_is_missed_while_another_is_waited_for(actor, monkeypatch):
    monkeypatch.setattr(lines_of, "LOOK", 0.05)
    watch = Watch()
    post = Post(watch)
    frozen, listener = actor("trainer"), ray.remote(Listener).options(num_cpus=0.1).remote()
    Line("trainer", frozen, post).call("start", listener)
    heard = ray.get(listener.pulses.remote())
    while not heard:
        heard = ray.get(listener.pulses.remote())
    watch.beat(heard[0])
    frozen.freeze.remote()
    with pytest.raises(RoleError, match="no sign of life") as caught:
        Line("teacher", actor(), post).call("sleep", SILENCE * 1.0)
    assert caught.value.field == "trainer"
    ray.kill(frozen), ray.kill(listener)


def test_a_promise_is_frozen(worker):
    with pytest.raises(AttributeError):
        Promise(reference=worker.echo.remote(1), role="worker", call="echo").call = "other"
