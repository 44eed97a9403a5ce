"""This file holds what a role knows of its own life, and that its pulses carry it."""

import threading

import pytest

from actors.vitals import CONTINUE, IDLE, STOP, Vitals, peak_rss, push_pulses


def test_time_inside_a_call_is_busy_and_the_call_is_counted():
    vitals = Vitals("trainer")
    assert (vitals.pulse().phase, vitals.pulse().calls) == (IDLE, 0)
    with vitals.serving("update"):
        during = vitals.pulse()
        while vitals.pulse().busy_seconds <= during.busy_seconds:
            pass  # a clock's tick
    after = vitals.pulse()
    assert during.phase == "update" and after.phase == IDLE
    assert after.calls == 1 and after.busy_seconds > during.busy_seconds
    assert vitals.pulse().busy_seconds == after.busy_seconds


def test_a_call_that_fails_ends_all_the_same():
    vitals = Vitals("trainer")
    with pytest.raises(ValueError), vitals.serving("update"):
        raise ValueError
    assert vitals.pulse().phase == IDLE


def test_progress_counts_up_while_a_call_advances():
    vitals = Vitals("rollout")
    with vitals.serving("generate"):
        before = vitals.pulse().progress
        vitals.advance()
        assert vitals.pulse().progress > before


def test_pulses_are_pushed_until_nobody_listens_and_directives_are_obeyed(monkeypatch):
    monkeypatch.setattr("actors.vitals.INTERVAL", 0.0)
    vitals, heard, replies = Vitals("teacher"), [], iter([CONTINUE, STOP, None])
    over = threading.Event()

    def beat(pulse):
        heard.append((pulse.role, vitals.stopping.is_set()))
        reply = next(replies)
        if reply is None:
            over.set()
        return reply

    push_pulses(vitals, beat)
    assert over.wait(10)
    assert heard == [("teacher", False), ("teacher", False), ("teacher", True)]


def test_peak_memory_is_that_of_this_process():
    before = peak_rss()
    block = bytearray(64 * 2**20)
    block[::4096] = b"x" * len(block[::4096])
    assert peak_rss() >= before > 2**20 and len(block)
