"""This file holds jobs that nobody takes; those that run are shown by the command that submits them."""

import subprocess
import sys

import pytest

from actors.jobs import entrypoint, submit_run
from miniverl.errors import RoleError


def test_an_address_without_a_job_api_is_named():
    with pytest.raises(RoleError, match="no job API answers") as caught:
        submit_run(["quickstart"], address="http://127.0.0.1:1", shell={})
    assert "127.0.0.1:1" in caught.value.value


def test_a_job_runs_in_the_folder_it_was_submitted_from_with_its_words_as_they_are(tmp_path, monkeypatch):
    folder = tmp_path / "a folder; with 'signs"
    folder.mkdir()
    monkeypatch.setattr(sys, "executable", "echo")
    line = entrypoint(["quickstart", "run.dir=$HOME/a b"], folder=str(folder))
    shown = subprocess.run(f"{line}; pwd", shell=True, capture_output=True, text=True, check=True).stdout
    assert shown == "-m miniverl run quickstart run.dir=$HOME/a b\n"
    moved = line.replace("exec echo", "pwd #")
    assert subprocess.run(moved, shell=True, capture_output=True, text=True, check=True).stdout == f"{folder}\n"
