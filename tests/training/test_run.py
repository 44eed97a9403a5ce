import pytest

from miniverl.training.run import Clock


def test_what_is_measured_apart_is_not_counted_into_the_step(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("miniverl.training.run.time.monotonic", lambda: now[0])
    clock = Clock()
    now[0] = 1.0
    with clock.apart("timing_s/testing"):
        now[0] = 4.0
    now[0] = 4.5
    assert clock.times() == {"timing_s/testing": 3.0, "timing_s/step": pytest.approx(1.5)}
    clock.start()
    assert clock.times() == {"timing_s/step": 0.0}
