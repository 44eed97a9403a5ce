"""The GPU check runs from end to end at a tiny size, measures the frozen cells, and never invents a figure."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from miniverl.bench.workload import load_workload

SCRIPT = Path(__file__).parents[2] / "scripts" / "gpu_check.py"


def run(*words):
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True)


@pytest.mark.slow
def test_a_dry_run_fills_every_cell_and_says_what_its_weights_are(tmp_path):
    done = run("--dry", "--eager", "--out", str(tmp_path / "out.json"))
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert "random" in found["weights"] and found["gpu"] is None
    assert len(found["cells"]) == 4
    for cell in found["cells"]:
        measured = cell["measured"]
        assert measured["tokens_per_second"] > 0 and measured["repeats_equal"]
        assert measured["samples_differ"] is (True if cell["cell"][3] == "stochastic" else None)
    assert 0 < found["conformance"]["max"] < 1e-4


@pytest.mark.slow
def test_cells_beyond_the_time_stay_empty(tmp_path):
    assert run("--dry", "--eager", "--seconds", "0", "--out", str(tmp_path / "out.json")).returncode == 0
    found = json.loads((tmp_path / "out.json").read_text())
    assert [cell["measured"] for cell in found["cells"]] == [None] * 4


def test_the_cells_are_those_of_the_frozen_workload():
    script = runpy.run_path(str(SCRIPT))
    workload = load_workload("rollout-24")
    assert script["CELLS"] == [
        (cell.prompt_tokens, cell.response_tokens, cell.samples, cell.sampling) for cell in workload.cells()
    ]
    assert script["PROMPTS"] == workload.prompts and script["REPETITIONS"] == workload.repetitions
    for name, mode in workload.sampling.items():
        assert {"top_p": 1.0, "top_k": 0, **script["SAMPLING"][name]} == mode.model_dump()


def test_without_a_gpu_nothing_is_measured(tmp_path):
    done = run("--out", str(tmp_path / "out.json"))
    assert done.returncode == 1 and "no CUDA device" in done.stderr and not (tmp_path / "out.json").exists()
