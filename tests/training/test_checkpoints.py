from pathlib import Path

import pytest

from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles
from miniverl.training.loop import train


@pytest.mark.slow
@pytest.mark.parametrize(("save_freq", "expected"), [(0, [4]), (3, [3, 4]), (1, [1, 2, 3, 4])])
def test_checkpoints_come_when_they_are_due_and_at_the_end(plan_for, save_freq, expected):
    plan = plan_for("run", f"trainer.save_freq={save_freq}")
    roles = local_roles(plan)
    train(assemble(plan, roles, stop=lambda: False, say=lambda event: None))
    named = roles.journal.checkpoints()
    roles.journal.release()
    assert sorted(checkpoint.step for checkpoint in named) == expected
    assert all(checkpoint.scheduled for checkpoint in named)
    folders = {path.name for path in (Path(plan.run_dir) / "checkpoints").iterdir()}
    assert folders == {f"step-{step}" for step in expected}
