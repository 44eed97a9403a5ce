"""This file holds the proxies: what they send, and that no update learns from less than was gathered."""

import sys

import pytest
import ray

from actors.line import Line
from actors.post import Post
from actors.remote import RemoteJournal, RemoteRollout, RemoteTeacher, RemoteTrainer
from actors.shell import Shell, served
from actors.watch import Watch
from miniverl.errors import TrainingError
from miniverl.training.roles import Journal, Rollout, Teacher, Trainer
from tests.actors.roles import differences
from tests.actors.test_post import parcel


class Reader(Shell):
    """A trainer and a teacher in one: takes parcels, fails at the cursor it is told to."""

    def __init__(self, fails_at: int = -1) -> None:
        super().__init__("reader")
        self._fails_at, self._read = fails_at, []

    @served
    def score(self, parcel):
        if parcel.groups[0].cursor == self._fails_at:
            raise TrainingError("models.teacher", problem="gives no signal", fix="check it")
        return parcel.groups[0].cursor

    @served
    def begin(self, step):
        self._read = []

    @served
    def add(self, parcel, targets):
        self._read.append((parcel.groups[0].cursor, targets))

    @served
    def update(self, step, expected):
        return self._read

    @ray.method(num_returns=2)
    @served
    def policy(self):
        return "snapshot", {"weights": 1}

    @served
    def synchronize(self, snapshot, tensors):
        self._read = [snapshot, tensors]

    @served
    def metrics(self):
        return self._read


@pytest.mark.parametrize(
    ("protocol", "proxy"),
    [(Trainer, RemoteTrainer), (Rollout, RemoteRollout), (Teacher, RemoteTeacher), (Journal, RemoteJournal)],
)
def test_a_proxy_answers_every_call_of_its_role(protocol, proxy):
    assert differences(protocol, proxy) == []


@pytest.fixture
def roles(attached):
    made = []

    def make(fails_at: int = -1):
        post = Post(Watch())
        kind = ray.remote(Reader).options(num_cpus=0.1)
        made.extend([kind.remote(), kind.remote(fails_at)])
        lines = [Line(role, actor, post) for role, actor in zip(("trainer", "teacher"), made[-2:], strict=True)]
        return RemoteTrainer(lines[0], post), RemoteTeacher(lines[1], post), RemoteRollout(lines[1]), post

    yield make
    for actor in made:
        ray.kill(actor)


@pytest.mark.slow
def test_parcels_and_their_targets_arrive_in_order(roles):
    trainer, teacher, _, post = roles()
    trainer.begin(1)
    for cursor in range(3):
        sent = parcel(cursor)
        trainer.add(sent, teacher.score(sent))
    assert trainer.update(1, ()) == [(0, 0), (1, 1), (2, 2)]
    assert post.promises() == ()


@pytest.mark.slow
@pytest.mark.parametrize("settle", ["a later add", "a look around"])
def test_the_store_may_drop_targets_as_soon_as_the_trainer_has_taken_them(roles, settle):
    trainer, teacher, _, post = roles()
    first, targets = parcel(0), teacher.score(parcel(0))
    reference = targets.reference
    trainer.add(first, targets)
    post.promises()[0].settle()  # waits until it is over; forgets nothing
    del targets
    holders = sys.getrefcount(reference)
    if settle == "a later add":
        trainer.add(parcel(1), None)
    else:
        post.look_around()
    assert sys.getrefcount(reference) == holders - 1, "the promise holds it no longer, only this test does"


@pytest.mark.slow
def test_a_failed_teacher_call_is_raised_and_no_update_learns_from_the_rest(roles):
    trainer, teacher, _, _ = roles(fails_at=1)
    trainer.begin(1)
    for cursor in range(3):
        sent = parcel(cursor)
        trainer.add(sent, teacher.score(sent))
    with pytest.raises(TrainingError, match="gives no signal"):
        trainer.update(1, ())


@pytest.mark.slow
def test_an_attempt_begun_anew_owes_nothing_to_the_one_before(roles):
    trainer, teacher, _, _ = roles(fails_at=1)
    sent = parcel(1)
    trainer.add(sent, teacher.score(sent))
    trainer.begin(1)
    assert trainer.update(1, ()) == []


@pytest.mark.slow
def test_the_tensors_of_a_policy_go_from_trainer_to_rollout_without_a_stop_here(roles):
    trainer, _, rollout, _ = roles()
    policy = trainer.policy()
    assert policy.snapshot == "snapshot" and isinstance(policy.tensors, ray.ObjectRef)
    rollout.synchronize(policy)
    assert rollout.metrics() == ["snapshot", {"weights": 1}]
