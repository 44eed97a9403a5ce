"""The phases of a step are those of the page, and the timed run is the real one."""

from __future__ import annotations

import json

from tests.bench.conftest import bench


def test_the_calls_of_the_page_are_timed_on_a_real_run():
    changes = ("data.train_batch_size=8", "rollout.max_padded_tokens=400")
    done = bench("cycle", "quickstart", *changes, "--steps", "2")
    assert done.exit_code == 0, done.output
    spent = json.loads(done.output[done.output.index("{") :])
    calls = (
        "trainer.policy rollout.synchronize rollout.generate journal.append teacher.score trainer.add trainer.update"
    )
    assert {*calls.split(), "journal.close", "step"} <= spent.keys()
    parts = sum(seconds for name, seconds in spent.items() if name != "step")
    assert all(seconds >= 0 for seconds in spent.values()) and parts <= spent["step"] * 1.01
