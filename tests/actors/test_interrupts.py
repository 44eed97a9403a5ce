"""This file holds what SIGINT and SIGTERM do to a run at work."""

import signal
import threading

import pytest

from actors.interrupts import TERMINATED, Interrupts


def test_the_first_sigint_is_a_wish_and_the_second_leaves():
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        assert not interrupts.wished
        signal.raise_signal(signal.SIGINT)
        assert interrupts.wished
        signal.raise_signal(signal.SIGINT)


def test_sigterm_leaves_at_once_with_its_own_code():
    with pytest.raises(SystemExit) as left, Interrupts():
        signal.raise_signal(signal.SIGTERM)
    assert left.value.code == TERMINATED == 143


def test_what_the_signals_meant_before_they_mean_again():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_off_the_main_thread_nothing_is_touched():
    before, seen = signal.getsignal(signal.SIGINT), []

    def elsewhere():
        with Interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]
