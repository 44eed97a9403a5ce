"""A candidate counts what it did, the same way for every backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from miniverl.bench.candidate import Bench, Candidate, adapter_shapes
from miniverl.bench.prompts import bench_prompts
from miniverl.bench.workload import workload_from
from miniverl.plan.identity import identify
from miniverl.plan.plan import DeviceShare
from tests.bench.test_workload import LEAST


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    tree = {**LEAST, "response_tokens": [6], "samples": [2], "prompts": 4, "slots": 4, "refreshes": 2,
            "sampling": {"hot": {"temperature": 2.0}}}  # fmt: skip
    bench = Bench(
        workload=workload_from(tree, source="w"), model=identify("miniverl://tiny-student", field="m"),
        share=DeviceShare(gpu=0.0, cpu=1.0, threads=1), compile_backend=False, scratch=tmp_path_factory.mktemp("b"),
    )  # fmt: skip
    shapes = adapter_shapes(bench.model_plan())
    prompts = bench_prompts(Path(bench.model.path), count=4, tokens=8)
    [cell] = bench.workload.cells()
    candidates = [Candidate(bench, name, shapes=shapes) for name in ("hf_cached", "hf_reference")]
    yield cell, prompts, candidates
    for candidate in candidates:
        candidate.close()


def test_two_backends_draw_the_same_tokens_from_the_same_policy(made):
    cell, prompts, candidates = made
    cached, reference = (one.repetition(cell, prompts, run_seed=0) for one in candidates)
    assert cached["digest"] == reference["digest"] and cached["tokens"] == reference["tokens"] == 4 * 2 * 6
    assert cached["distinct"] == 2 and cached["seconds"] > 0 and cached["seconds_prefill"] > 0
    assert candidates[0].repetition(cell, prompts, run_seed=1)["digest"] != cached["digest"]


def test_static_batches_give_the_same_tokens(made):
    cell, prompts, [cached, _] = made
    assert cached.static(cell, prompts, run_seed=0)["digest"] == cached.repetition(cell, prompts, run_seed=0)["digest"]


def test_integrated_time_counts_every_token_of_every_row(made):
    cell, prompts, [_, reference] = made
    found = reference.integrated(cell, prompts, points=3)
    assert found["tokens"] == 48 and found["integrated_over"] == [8, 10, 13]
    assert "digest" not in found
    spent = reference.repetition(cell, prompts, run_seed=0)["seconds"]
    assert 0.2 < found["seconds"] / spent < 5


def test_every_policy_taken_up_answers_otherwise(made):
    _, prompts, candidates = made
    for candidate in candidates:
        found = candidate.refreshes(prompts[:2])
        assert len({one["identity"] for one in found}) == len({one["digest"] for one in found}) == 2
        assert all(one["syncs"] == 1 and one["peak_bytes"] > 0 for one in found)


def test_what_was_not_measured_is_none_and_never_zero(made):
    assert made[2][1].phases()["seconds_compile"] is None
