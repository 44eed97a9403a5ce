"""This file holds the command that trains: its first words, its refusals, its figures."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from miniverl.cli.run import is_finished, outcome, planned, run
from miniverl.errors import ConfigError, RecordError, RoleError
from miniverl.record.journal import Journal
from miniverl.record.rundir import RunDirectory
from tests.finished import bytes_of, finish
from tests.small_run import SMALL, STEPS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def called():
    """Calls the command as the shell would."""
    app = typer.Typer()
    app.command()(run)

    def call(*words: str) -> str:
        return CliRunner().invoke(app, list(words), catch_exceptions=False).output

    return call


@pytest.fixture
def plan(tmp_path):
    return planned("quickstart", SMALL, str(tmp_path / "run"))


def test_the_first_line_comes_before_anything_is_read(called):
    with pytest.raises(ConfigError):
        called("no-such-recipe")
    first = subprocess.run(
        [sys.executable, "-m", "miniverl", "run", "no-such-recipe"], cwd=ROOT, capture_output=True, text=True
    )
    assert first.stdout.splitlines()[0] == "miniverl: reading no-such-recipe and its data"
    assert first.returncode == 2 and "Traceback" not in first.stderr


def test_a_dry_run_shows_the_plan_and_writes_nothing(called, tmp_path):
    shown = called("quickstart", *SMALL, "--dry-run", "-o", str(tmp_path / "run"))
    assert f"{STEPS} of 8 prompts x 2 samples" in shown and not list(tmp_path.iterdir())


def test_a_dry_run_needs_neither_torch_nor_ray(tmp_path):
    script = (
        "import sys; sys.argv = ['miniverl', 'run', 'quickstart', '--dry-run', '-o', sys.argv[1]]\n"
        "from miniverl.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as left: assert not left.code\n"
        "assert not {'torch', 'ray'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], cwd=ROOT, check=True, capture_output=True)


def test_a_dead_ray_address_is_named_on_the_command_line(called, monkeypatch, tmp_path):
    monkeypatch.setattr("actors.address.CONNECT", 0.5)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(RoleError, match=r"127\.0\.0\.1:1") as caught:
        called("quickstart", *SMALL, "-o", str(tmp_path / "run"))
    assert caught.value.field == "RAY_ADDRESS"


def test_a_directory_with_another_run_is_refused_when_resume_is_never(called, plan):
    Path(plan.run_dir).mkdir()
    Journal.create(
        plan.run_dir, run_id=plan.run_id, experiment=plan.experiment, experiment_facts=plan.experiment_facts
    ).release()
    assert not is_finished(plan), "a run that is begun is not finished"
    with pytest.raises(RecordError, match="never"):
        called("quickstart", *SMALL, "run.resume=never", "-o", plan.run_dir)


@pytest.mark.slow
def test_a_run_killed_during_its_export_is_not_finished_until_the_same_command_has_exported(tmp_path):
    short = (*SMALL, "trainer.total_training_steps=2", "data.val_files=[]")
    plan = planned("quickstart", short, str(tmp_path / "run"))
    RunDirectory.prepare(plan.run_dir).record_plan(plan)
    finish(plan)
    whole = bytes_of(plan)
    assert is_finished(plan)
    shutil.rmtree(Path(plan.run_dir) / "final")
    assert not is_finished(plan)
    finish(plan)
    assert is_finished(plan) and bytes_of(plan) == whole


def test_the_outcome_names_what_was_measured_and_where_the_result_lies(plan):
    measured = {"teacher": {"accuracy": 0.99, "n": 512}, "student_before": {"accuracy": 0.21, "n": 512}}
    lines = outcome({"evaluation": measured}, plan)
    assert [line.split()[0] for line in lines[:2]] == ["teacher", "student"] and "99.00% of 512" in lines[0]
    assert f"adapter of the student is in {plan.run_dir}/final" in lines[-1]
