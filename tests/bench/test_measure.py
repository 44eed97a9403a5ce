"""A measurement keeps what failed beside what did not."""

from __future__ import annotations

import json

from tests.bench.conftest import SMALL, bench


def raw(aggregate, backend):
    return json.loads(aggregate.with_name(f"out.{backend}.raw.json").read_text())


def test_every_cell_has_its_warm_ups_and_repetitions(measured):
    cells = raw(measured, "hf_cached")["cells"]
    assert len(cells) == 4
    for cell in cells:
        assert len(cell["warmups"]) == 1 and len(cell["repetitions"]) == 2
        assert cell["logp_difference"] < 5e-5
    assert all("integrated_over" in cell["repetitions"][0] for cell in raw(measured, "hf_reference")["cells"])


def test_a_backend_that_does_not_start_is_recorded_and_the_others_are_measured(tmp_path, monkeypatch):
    import sys

    (tmp_path / "small.yaml").write_text(SMALL)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))  # where no vLLM environment is recorded
    words = ("--workload", str(tmp_path / "small.yaml"), "--out", str(tmp_path / "out.json"))
    done = bench("rollout", *words, "--backend", "vllm", "--backend", "hf_cached")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out.json").read_text())
    assert "not installed" in found["backends"]["vllm"]["error"]
    assert all(cell["backends"]["hf_cached"]["tokens_per_second"] > 0 for cell in found["cells"])
    gates = {gate["name"]: gate["passed"] for gate in found["gates"]}
    assert gates["vllm starts"] is False
    assert gates["hf_cached : hf_reference in every cell"] is False  # nobody measured hf_reference
