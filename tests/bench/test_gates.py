"""A gate holds only over what was measured."""

from __future__ import annotations

import copy
import json

import pytest

from miniverl.bench.gates import evaluate, failed
from miniverl.bench.workload import workload_from


@pytest.fixture
def found(measured):
    return json.loads(measured.read_text())


def judged(found):
    workload = workload_from(found["workload"], source="w")
    return {gate["name"]: gate for gate in evaluate(workload, found["cells"], found["backends"])}


def test_what_was_measured_holds_and_what_was_not_does_not(found):
    gates = judged(found)
    missed = {name for name, gate in gates.items() if not gate["passed"]}
    assert missed == {"vllm : hf_cached in every cell"}
    assert failed(list(gates.values())) == []  # a selection that is missed fails nothing


SPOILS = {
    "hf_cached: equal seeds give equal tokens": ("repeats_equal", False),
    "hf_cached: the samples of a prompt differ": ("distinct", 0),
    "hf_cached: other seeds give other tokens": ("other_seed_differs", False),
    "hf_cached: stochastic tokens differ from greedy ones": ("digest", "one and the same"),
    "hf_cached: log-probs of plain forward passes": ("logp_difference", 1e-3),
    "hf_cached: every cell was computed": ("error", "went wrong"),
}


@pytest.mark.parametrize("name", SPOILS)
def test_a_finding_that_is_spoilt_is_seen(found, name):
    key, value = SPOILS[name]
    for cell in found["cells"]:
        cell["backends"]["hf_cached"][key] = value
    assert not judged(found)[name]["passed"]


def test_policies_that_answer_alike_and_memory_that_grows_are_seen(found):
    spoilt = copy.deepcopy(found)
    spoilt["backends"]["hf_cached"]["refreshes"]["outputs_that_differ_from_the_last"] = 0
    assert not judged(spoilt)["hf_cached: policies, each answering otherwise than the last"]["passed"]
    found["backends"]["hf_cached"]["refreshes"]["peak_bytes"] = [100, 100, 110]
    assert not judged(found)["hf_cached: memory does not grow with policies"]["passed"]
    found["backends"]["hf_cached"]["refreshes"]["peak_bytes"] = [100, None, 100]
    assert not judged(found)["hf_cached: memory"]["passed"]


def test_a_ratio_that_is_missing_in_one_cell_fails(found):
    assert judged(found)["hf_cached : hf_reference in every cell"]["passed"]
    del found["cells"][2]["ratios"]["hf_cached/hf_reference"]
    assert not judged(found)["hf_cached : hf_reference in every cell"]["passed"]
