"""The command that says what a recipe would do."""

from __future__ import annotations

import json

import pytest
import typer
import yaml
from typer.testing import CliRunner

from miniverl.cli.plan import plan
from miniverl.errors import ConfigError
from tests.plan.conftest import desk

__all__ = ["desk"]


@pytest.fixture
def asked(desk):
    """Calls the command on the desk's recipe, as the shell would."""
    app = typer.Typer()
    app.command()(plan)
    path = desk.folder / "desk.yaml"
    path.write_text(yaml.safe_dump(desk.tree), encoding="utf-8")

    def call(*words: str) -> str:
        return CliRunner().invoke(app, [str(path), *words], catch_exceptions=False).output

    return call


def test_the_plan_is_printed_with_the_changes_of_the_command_line(asked):
    assert "5 of 4 prompts x 2 samples" in asked()
    changed = asked("rollout.samples_per_prompt=3", "+trainer.total_training_steps=7", "~data.val_files", "--json")
    assert json.loads(changed)["samples_per_prompt"] == 3
    assert json.loads(changed)["evaluation_data"] is None


def test_json_is_the_whole_plan_and_nothing_else(asked):
    assert json.loads(asked("--json"))["schedule"]["total_training_steps"] == 5


def test_planning_leaves_nothing_behind(asked, desk):
    before = sorted(desk.folder.rglob("*"))
    asked()
    assert sorted(desk.folder.rglob("*")) == before


def test_a_mistake_is_raised_as_itself_for_the_command_line_to_print(asked):
    with pytest.raises(ConfigError, match="did you mean rollout"):
        asked("rollout.temprature=1")
