"""This file holds the command that tells what a run directory holds."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from miniverl.cli.inspect import inspect
from miniverl.cli.run import planned
from miniverl.errors import RecordError
from miniverl.record.journal import Journal
from tests.small_run import SMALL


@pytest.fixture
def asked():
    app = typer.Typer()
    app.command()(inspect)
    return lambda *words: CliRunner().invoke(app, list(words), catch_exceptions=False).output


@pytest.fixture
def begun(tmp_path) -> Path:
    """A run directory in which nothing has happened yet."""
    plan = planned("quickstart", SMALL, str(tmp_path))
    Journal.create(
        plan.run_dir, run_id=plan.run_id, experiment=plan.experiment, experiment_facts=plan.experiment_facts
    ).release()
    return tmp_path


def test_a_run_is_told_in_lines(asked, begun):
    assert "interrupted" in asked(str(begun)) and str(begun) in asked(str(begun))


def test_json_is_all_of_it_and_nothing_else(asked, begun):
    facts = json.loads(asked(str(begun), "--json"))
    assert facts["steps"]["done"] == 0 and facts["evaluation"] == {} and facts["actors"] == {}


def test_a_folder_without_a_run_is_refused(asked, tmp_path):
    with pytest.raises(RecordError):
        asked(str(tmp_path / "nowhere"))
