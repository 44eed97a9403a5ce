"""The bench commands answer with what is wrong."""

from __future__ import annotations

import shutil

from tests.bench.conftest import bench, measured  # noqa: F401  the fixture


def test_check_judges_the_gates_and_exits_by_them(measured, tmp_path):  # noqa: F811
    done = bench("check", str(measured))
    assert done.exit_code == 0 and "not selected vllm : hf_cached" in done.output
    assert bench("report", str(measured)).output.startswith("# small")
    for path in measured.parent.glob("out*"):
        shutil.copy(path, tmp_path)
    (tmp_path / "out.hf_cached.raw.json").unlink()
    assert bench("check", str(tmp_path / "out.json")).exit_code


def test_unknown_backends_workloads_and_missing_models_are_refused(tmp_path):
    words = ("rollout", "--out", str(tmp_path / "o.json"))
    assert "is no rollout backend" in str(bench(*words, "--workload", "cpu-tiny", "--backend", "x").exception)
    assert "cpu-tiny" in str(bench(*words, "--workload", "x", "--backend", "hf_cached").exception)
    assert "names no model" in str(bench(*words, "--workload", "cpu-smollm2", "--backend", "hf_cached").exception)
    assert not (tmp_path / "o.json").exists()
