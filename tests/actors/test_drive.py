"""This file holds what is said and refused before a run goes on."""

from dataclasses import replace
from pathlib import Path

import pytest

from actors.drive import holds_run, run_over_actors, say_what_differs
from miniverl.errors import RecordError, RoleError
from miniverl.record.journal import Journal
from miniverl.record.rundir import RunDirectory


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


def words_about(plan) -> list[str]:
    """What is said of the plan against the one recorded in its directory."""
    said = []
    say_what_differs(plan, RunDirectory.prepare(plan.run_dir), said.append)
    return [event.text for event in said]


def test_a_new_run_and_one_that_goes_on_as_before_need_no_words(plan):
    assert words_about(plan) == []
    RunDirectory.prepare(plan.run_dir).record_plan(plan)
    assert words_about(plan) == []


def test_what_differs_in_execution_is_named_with_both_values_on_one_line(plan):
    RunDirectory.prepare(plan.run_dir).record_plan(plan)
    elsewhere = {**plan.execution_facts, "placement.trainer.threads": 7, "ray.address": "there:1"}
    (line,) = words_about(replace(plan, execution_facts=elsewhere))
    assert "placement.trainer.threads 1 -> 7; " in line and line.endswith('ray.address null -> "there:1"')


def test_a_damaged_record_of_the_plan_stops_nothing(plan):
    RunDirectory.prepare(plan.run_dir).plan.write_text("{")
    assert words_about(plan) == []
