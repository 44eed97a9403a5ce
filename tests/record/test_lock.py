"""This file holds the behaviour of the lock: one writer at a time, known by name, and none after its death."""

import os

import pytest

from miniverl.errors import RecordError
from miniverl.record.lock import Lock, holder, holder_lives
from tests.record.drawn import die, in_a_child


def test_a_second_lock_is_refused_with_the_holders_process(tmp_path):
    first = Lock(tmp_path / "lock")
    with pytest.raises(RecordError, match=f"process {os.getpid()} on "):
        Lock(tmp_path / "lock")
    first.release()
    Lock(tmp_path / "lock").release()


def test_releasing_twice_does_nothing(tmp_path):
    lock = Lock(tmp_path / "lock")
    lock.release()
    lock.release()


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    def hold() -> None:
        Lock(tmp_path / "lock")
        die()

    assert in_a_child(hold) == -9
    assert holder(tmp_path / "lock") is not None and not holder_lives(tmp_path / "lock")
    Lock(tmp_path / "lock").release()


def test_a_living_holder_is_seen_without_taking_the_lock(tmp_path):
    path = tmp_path / "lock"
    assert not holder_lives(path)
    lock = Lock(path)
    assert holder_lives(path)
    lock.release()
    assert holder(path) is None and not holder_lives(path)


def test_a_process_id_that_was_used_again_is_not_the_holder(tmp_path):
    path = tmp_path / "lock"
    lock = Lock(path)
    path.write_text(path.read_text().replace('"ticks": "', '"ticks": "9'))
    assert not holder_lives(path)
    lock.release()


@pytest.mark.parametrize("text", ["[]", "{}", '{"pid": "x"}', "\0"])
def test_a_lock_file_of_odd_content_names_nobody(tmp_path, text):
    (tmp_path / "lock").write_text(text)
    assert holder(tmp_path / "lock") is None and not holder_lives(tmp_path / "lock")
