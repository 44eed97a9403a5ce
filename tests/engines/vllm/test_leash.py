"""This file holds the tests of the leash, on real processes: whoever dies, nothing of the server is left."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from miniverl.engines.vllm import leash

SERVER = """
import signal, subprocess, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" not in sys.argv:
    subprocess.Popen([sys.executable, __file__, "child", *sys.argv[1:]], start_new_session="away" in sys.argv)
if "brief" in sys.argv:
    time.sleep(2)
    sys.exit(3)
time.sleep(600)
"""


@pytest.fixture
def started(tmp_path):
    """Starts the leash over a server with a child; gives the leash, the record and the two processes once they live."""
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    record = tmp_path / "record.json"
    made = []

    def start(*how):
        command = [sys.executable, leash.__file__, str(record), "--", sys.executable, str(program), *how]
        held = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        made.append(held)
        until(lambda: len(leash.living(record)) == 2)
        return held, record, leash.living(record)

    yield start
    for held in made:
        held.kill()
        held.wait()
        held.stdin.close()
    leash.sweep(record)


def until(true, seconds=20.0):
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, "it never came true"
        time.sleep(0.02)


def alive(pids):
    return [pid for pid in pids if leash.started(pid) is not None]


@pytest.mark.parametrize("how", [(), ("away",)], ids=["one group", "a child in a session of its own"])
def test_letting_go_ends_the_server_and_its_children(started, how):
    held, record, pids = started(*how)
    began = time.monotonic()
    held.stdin.close()
    held.wait()
    assert alive(pids) == [] and not record.exists()
    assert time.monotonic() - began < leash.GRACE  # it was asked, not killed


@pytest.mark.slow
def test_a_server_that_does_not_listen_is_killed(started):
    held, _, pids = started("stubborn")
    began = time.monotonic()
    held.stdin.close()
    held.wait()
    assert alive(pids) == [] and time.monotonic() - began < leash.GRACE + 5


def test_a_server_that_ends_by_itself_takes_its_children_along(started):
    held, record, pids = started("brief")
    assert held.wait() == 3
    assert alive(pids) == [] and not record.exists()


def test_the_death_of_whoever_holds_the_leash_ends_the_server(started, tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", f"""
import subprocess, sys, time
command = [sys.executable, {leash.__file__!r}, sys.argv[1], "--", sys.executable, sys.argv[2]]
held = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
time.sleep(600)
""", str(tmp_path / "other.json"), str(tmp_path / "server.py")],
    )  # fmt: skip
    (tmp_path / "server.py").write_text(SERVER)
    until(lambda: len(leash.living(tmp_path / "other.json")) == 2)
    pids = leash.living(tmp_path / "other.json")
    holder.kill()
    holder.wait()
    until(lambda: alive(pids) == [])


def test_what_outlives_a_killed_leash_is_swept_by_the_next_start(started):
    held, record, pids = started("away")
    held.kill()
    held.wait()
    until(lambda: len(alive(pids)) == 1)  # the server dies with its leash; its child does not
    assert leash.sweep(record) == alive(pids) or alive(pids) == []
    assert alive(pids) == [] and not record.exists()


def test_a_process_that_only_got_the_same_number_is_left_alone(tmp_path):
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    record = tmp_path / "record.json"
    record.write_text(json.dumps({str(other.pid): "1"}))
    assert leash.sweep(record) == []
    assert other.poll() is None
    other.kill()
    other.wait()


def test_no_record_and_a_damaged_one_sweep_nothing(tmp_path):
    assert leash.sweep(tmp_path / "none.json") == []
    (tmp_path / "cut.json").write_text('{"12": ')
    assert leash.sweep(tmp_path / "cut.json") == []


def test_start_times_tell_processes_apart_and_the_dead_have_none():
    assert leash.started(os.getpid()) is not None
    child = subprocess.Popen([sys.executable, "-c", ""])
    until(lambda: leash.started(child.pid) is None)  # dead, not yet collected
    child.wait()
    assert leash.started(child.pid) is None
    assert signal.SIGKILL == 9
