"""The commands around the vLLM backend."""

from __future__ import annotations

import json
import os

from typer.testing import CliRunner

from miniverl.cli.main import app
from miniverl.engines.vllm import leash


def asked(*words):
    return CliRunner().invoke(app, ["vllm", *words])


def test_the_processes_of_a_server_are_shown_while_they_live(tmp_path):
    assert "no process" in asked("status", str(tmp_path)).output
    (tmp_path / "vllm").mkdir()
    record = tmp_path / "vllm" / "processes.json"
    record.write_text(json.dumps({str(os.getpid()): leash.started(os.getpid()), "1": "0"}))
    assert asked("status", str(tmp_path)).output.strip() == f"alive: {os.getpid()}"


def test_setting_up_over_a_folder_that_is_something_else_is_refused(tmp_path):
    result = asked("setup", str(tmp_path))
    assert result.exit_code and "is no virtual environment" in str(result.exception)
