"""This file holds the refusals that come before any process starts."""

from dataclasses import replace
from pathlib import Path

import pytest

from actors.drive import holds_run, run_over_actors
from miniverl.errors import RecordError, RoleError
from miniverl.record.journal import Journal


@pytest.fixture
def begun(plan):
    """The plan, its directory holding a run that was started."""
    Path(plan.run_dir).mkdir(parents=True)
    Journal.create(
        plan.run_dir, run_id=plan.run_id, experiment=plan.experiment, experiment_facts=plan.experiment_facts
    ).release()
    return plan


def test_a_directory_holds_a_run_once_it_was_started(begun, tmp_path):
    assert holds_run(begun.run_dir) and not holds_run(str(tmp_path / "elsewhere"))


def test_resume_never_refuses_a_directory_with_a_run(begun):
    with pytest.raises(RecordError, match=r"run\.resume is never"):
        run_over_actors(replace(begun, resume="never"), say=print)


def test_a_dead_address_in_the_recipe_is_named_before_anything_is_written(plan, monkeypatch):
    monkeypatch.setattr("actors.address.CONNECT", 0.5)
    with pytest.raises(RoleError, match=r"ray\.address"):
        run_over_actors(replace(plan, ray_address="127.0.0.1:1"), say=print)
    assert not Path(plan.run_dir).exists()
