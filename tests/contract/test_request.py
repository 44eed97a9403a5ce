"""Requests: how tokens are drawn is checked once, and no two samples of a run share a seed."""

from __future__ import annotations

import math
from typing import Any

import pytest

from miniverl.contract.request import Sampling, requests_for
from miniverl.errors import ContractError
from tests.contract.drawn import crossed, prompt, snapshot


def sampling(**changes: Any) -> Sampling:
    return Sampling(**{"temperature": 1.0, "max_new_tokens": 8, "stop_token_ids": (2,)} | changes)


def seeds(*cursors: int, samples: int = 2, run_seed: int = 1, **facts: Any) -> list[int]:
    """The seeds of the same prompt asked at every cursor."""
    asked = [(cursor, prompt(5, 6)) for cursor in cursors]
    made = requests_for(asked, snapshot(**facts), samples=samples, sampling=sampling(), run_seed=run_seed)
    return [request.seed for request in made]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 100.5),
        ("temperature", math.inf),
        ("temperature", math.nan),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_p", math.nan),
        ("top_k", -1),
        ("max_new_tokens", 0),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_way_back(field, value):
    with pytest.raises(ContractError, match=rf"sampling\.{field} = .*out of range; set it"):
        sampling(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", 0.0),
        ("temperature", 100.0),
        ("top_p", 1e-9),
        ("top_p", 1.0),
        ("top_k", 0),
        ("max_new_tokens", 1),
    ],
)
def test_the_ends_of_a_range_belong_to_it(field, value):
    assert getattr(sampling(**{field: value}), field) == value


def test_greedy_requests_are_scored_at_temperature_one():
    assert sampling(temperature=0.0).greedy
    assert sampling(temperature=0.0).scoring_temperature == 1.0
    assert not sampling(temperature=0.5).greedy
    assert sampling(temperature=0.5).scoring_temperature == 0.5


def test_an_empty_stop_string_is_refused():
    with pytest.raises(ContractError, match=r"sampling\.stop .*leave out the empty string"):
        Sampling(temperature=1.0, max_new_tokens=1, stop_token_ids=(), stop=("a", ""))


@pytest.mark.parametrize(
    ("changes", "truncates"),
    [
        ({}, False),
        ({"top_p": 0.9}, True),
        ({"top_k": 5}, True),
        ({"temperature": 0.0, "top_p": 0.9, "top_k": 5}, False),
    ],
)
def test_the_vocabulary_is_cut_by_top_p_and_top_k_but_never_for_greedy(changes, truncates):
    assert sampling(**changes).truncates is truncates


def test_requests_come_in_cursor_order_and_within_a_group_by_sample_index():
    asked = [(4, prompt(5, 6)), (5, prompt(7))]
    requests = requests_for(asked, snapshot(), samples=2, sampling=sampling(), run_seed=1)
    assert [(request.cursor, request.sample_index) for request in requests] == [(4, 0), (4, 1), (5, 0), (5, 1)]
    assert {request.samples for request in requests} == {2}
    assert {request.snapshot_digest for request in requests} == {snapshot().digest}
    assert requests[1].request_id == f"{requests[0].group_id}/1"
    assert requests[0].group_id == requests[1].group_id != requests[2].group_id


def test_the_seed_of_a_sample_is_locked():
    """Changing this changes every token that is drawn."""
    assert seeds(4, samples=1) == [5708914857185079781]


def test_the_same_prompt_at_two_cursors_gets_different_seeds():
    assert len(set(seeds(0, 1, 2, samples=4))) == 12


def test_a_seed_follows_from_names_not_from_what_else_is_asked():
    assert seeds(0, 1, 2, samples=4)[4:6] == seeds(1, samples=2)


def test_another_run_or_another_version_draws_other_samples_and_another_machine_does_not():
    assert not set(seeds(0)) & set(seeds(0, run_seed=2))
    assert not set(seeds(0)) & set(seeds(0, version=4))
    assert seeds(0) == seeds(0, backend_version="elsewhere")


def test_a_request_is_the_same_in_another_process():
    (sent,) = requests_for([(4, prompt(5, 6))], snapshot(), samples=1, sampling=sampling(stop=("\n",)), run_seed=1)
    received = crossed(sent)
    assert received.prompt.digest == sent.prompt.digest
    assert received.sampling == sent.sampling and hash(received.sampling) == hash(sent.sampling)
    assert (received.request_id, received.seed, received.snapshot_digest) == (
        sent.request_id, sent.seed, sent.snapshot_digest,
    )  # fmt: skip
