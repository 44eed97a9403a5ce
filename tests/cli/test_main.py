"""This file holds the command line as a person meets it: help, version, mistakes and exit codes."""

import subprocess
import sys
from dataclasses import dataclass

import pytest
import typer

from miniverl import __version__
from miniverl.cli import main as command_line
from miniverl.errors import ConfigError, RoleError, Stopped


@dataclass(frozen=True)
class Answer:
    code: object
    out: str
    err: str


@pytest.fixture
def miniverl(monkeypatch, capsys):
    """Calls main as the shell would."""

    def call(*words: str) -> Answer:
        monkeypatch.setattr(sys, "argv", ["miniverl", *words])
        with pytest.raises(SystemExit) as left:
            command_line.main()
        return Answer(left.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def main_of(monkeypatch, miniverl):
    """Calls main with a command that only raises."""

    def call(outcome: BaseException) -> Answer:
        app = typer.Typer()

        @app.command()
        def broken() -> None:
            raise outcome

        monkeypatch.setattr(command_line, "app", app)
        return miniverl()

    return call


def test_python_dash_m_is_the_command():
    result = subprocess.run([sys.executable, "-m", "miniverl", "--version"], capture_output=True, text=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"miniverl {__version__}\n", "")


def test_help_names_every_command(miniverl):
    answer = miniverl("--help")
    assert answer.code == 0
    assert all(f" {name} " in answer.out for name in (*command_line.COMMANDS, "data"))


@pytest.mark.parametrize("name", ["demo", "run", "plan", "inspect", "submit", "data", "data sample"])
def test_every_command_explains_itself(miniverl, name):
    answer = miniverl(*name.split(), "--help")
    assert answer.code == 0 and f"Usage: miniverl {name}" in answer.out


def test_no_command_at_all_shows_the_help(miniverl):
    assert "miniverl demo" in miniverl().out


def test_a_near_miss_is_answered_with_the_right_name(miniverl):
    answer = miniverl("pln")
    assert answer.code == 2 and "Did you mean 'plan'" in answer.err


def test_an_unknown_option_is_a_usage_error(miniverl):
    answer = miniverl("plan", "quickstart", "--jsno")
    assert answer.code == 2 and "--jsno" in answer.err


def test_a_mistake_in_a_recipe_is_told_without_a_traceback(miniverl):
    answer = miniverl("plan", "nowhere.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: recipe = 'nowhere.yaml': ") and "\n  fix: " in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (ConfigError("a.b", value=1, problem="p", fix="f"), 2),
        (RoleError("trainer", problem="died", fix="run it again"), 1),
        (Stopped(), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes_tell_a_mistake_a_failure_and_an_interrupt_apart(main_of, outcome, code):
    assert main_of(outcome).code == code


def test_a_bug_of_ours_keeps_its_traceback(main_of):
    with pytest.raises(AssertionError, match="impossible"):
        main_of(AssertionError("impossible"))
