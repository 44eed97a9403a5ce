"""A benchmark of seconds, measured once for all tests of the room."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from miniverl.cli.main import app

SMALL = """
model: miniverl://tiny-student
prompts: 2
prompt_tokens: [16]
response_tokens: [8]
samples: [1, 2]
sampling:
  greedy: {temperature: 0.0}
  stochastic: {temperature: 0.8, top_p: 0.95, top_k: 50}
repetitions: 2
refreshes: 3
integrated: {hf_reference: 3}
gates:
  - {faster: hf_cached, slower: hf_reference, at_least: 0.01}
  - {faster: vllm, slower: hf_cached, at_least: 1.2, purpose: selection}
"""


def bench(*words: str):
    return CliRunner().invoke(app, ["bench", *words])


@pytest.fixture(scope="session")
def measured(tmp_path_factory) -> Path:
    """The aggregate of a small workload; its raw files lie beside it."""
    folder = tmp_path_factory.mktemp("bench")
    (folder / "small.yaml").write_text(SMALL)
    words = ("--workload", str(folder / "small.yaml"), "--out", str(folder / "out.json"))
    done = bench("rollout", *words, "--backend", "hf_reference", "--backend", "hf_cached")
    assert done.exit_code == 0, done.output
    return folder / "out.json"
