"""Workloads are closed, complete and packaged."""

from __future__ import annotations

import pytest

from miniverl.bench.workload import load_workload, packaged_workloads, refuse_unknown_backends, workload_from
from miniverl.errors import ConfigError

LEAST = {"name": "w", "prompt_tokens": [8], "response_tokens": [4], "samples": [1],
         "sampling": {"greedy": {"temperature": 0.0}}, "repetitions": 1}  # fmt: skip


@pytest.mark.parametrize("name", packaged_workloads())
def test_a_packaged_workload_loads(name):
    assert load_workload(name).name == name


def test_the_frozen_workload_has_its_24_cells():
    workload = load_workload("rollout-24")
    assert len(workload.cells()) == 24 and workload.longest == 1024 and workload.most_rows == 16
    stochastic = workload.sampling_of(workload.cells()[1], vocabulary=10)
    assert (stochastic.temperature, stochastic.top_p, stochastic.top_k) == (0.8, 0.95, 50)
    assert stochastic.stop_token_ids == ()


def test_mixed_lengths_end_at_every_nth_id():
    workload = workload_from({**LEAST, "stop_every": 4}, source="w")
    assert workload.sampling_of(workload.cells()[0], vocabulary=10).stop_token_ids == (4, 8)


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"promts": 3}, "promts"), ({"samples": []}, "samples"), ({"samples": [0]}, "samples"),
     ({"sampling": {"x": {"temperature": -1.0}}}, "sampling"), ({"repetitions": "2"}, "repetitions")],
)  # fmt: skip
def test_a_wrong_key_or_value_is_named(changes, field):
    with pytest.raises(ConfigError, match=field):
        workload_from({**LEAST, **changes}, source="w")


def test_a_workload_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match="cpu-tiny"):
        load_workload("cpu-tinny")


def test_a_backend_that_is_not_there_is_refused():
    refuse_unknown_backends(["vllm"])
    with pytest.raises(ConfigError, match=r"sglang.*hf_cached"):
        refuse_unknown_backends(["hf_cached", "sglang"])
