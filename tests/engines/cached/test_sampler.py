"""This file holds the tests of the sampler against plain loops over one row."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from miniverl.contract.request import Sampling
from miniverl.engines.cached.sampler import Sampler, invert, kept
from tests.oracle import sampling as twin


def sampling(**fields):
    return Sampling(**{"temperature": 1.0, "max_new_tokens": 4, "stop_token_ids": (), **fields})


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(-6, 6), min_size=9, max_size=9), min_size=1, max_size=4),
    top_k=st.integers(0, 11),
    top_p=st.sampled_from([0.05, 0.3, 0.5, 0.77, 0.9, 0.999, 1.0]),
    u=st.floats(0, 1, exclude_max=True),
)
def test_top_k_and_top_p_keep_what_the_loops_keep(rows, top_k, top_p, u):
    logps = torch.tensor(rows, dtype=torch.float32).mul(0.7).log_softmax(-1)
    mask = kept(logps, top_k=top_k, top_p=top_p)
    ids, total = invert(logps.double().exp() * mask, torch.full((len(rows),), u, dtype=torch.float64))
    for line, row in enumerate(logps.numpy()):
        expected = twin.keep(row, top_k=top_k, top_p=top_p)
        assert mask[line].nonzero()[:, 0].tolist() == expected
        token, behaviour = twin.pick(row, expected, u)
        assert ids[line] == token
        assert abs(float(row[token] - total[line].log()) - behaviour) < 1e-9


def test_the_id_that_crosses_top_p_is_kept_and_nothing_after_it():
    mask = kept(torch.tensor([[0.5, 0.3, 0.2]]).log(), top_k=0, top_p=0.6)
    assert mask.tolist() == [[True, True, False]]


def test_top_p_counts_the_mass_that_top_k_left():
    mask = kept(torch.tensor([[0.4, 0.2, 0.2, 0.2]]).log(), top_k=2, top_p=0.6)
    assert mask.tolist() == [[True, False, False, False]]


def test_of_equally_likely_ids_the_lower_are_kept():
    mask = kept(torch.zeros(1, 6).log_softmax(-1), top_k=3, top_p=1.0)
    assert mask.tolist() == [[True, True, True, False, False, False]]


def test_top_k_keeps_even_the_unlikeliest_ids():
    mask = kept(torch.tensor([[0.0, -60.0, -70.0, -80.0]]).log_softmax(-1), top_k=3, top_p=1.0)
    assert mask.tolist() == [[True, True, True, False]]


def test_greedy_takes_the_lowest_of_equal_ids_and_reports_at_temperature_one():
    logits = torch.tensor([[0.0, 2.0, 1.0, 2.0]])
    draw = Sampler(sampling(temperature=0.0, top_p=0.5, top_k=1))(logits, torch.zeros(1, dtype=torch.float64))
    assert draw.tokens.tolist() == [1]
    assert torch.equal(draw.logps, logits.log_softmax(-1)[:, 1]) and draw.behaviour_logps is None


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_logps_are_full_vocabulary_at_the_temperature(temperature):
    logits = torch.randn(5, 30, generator=torch.Generator().manual_seed(0))
    u = torch.linspace(0, 0.99, 5, dtype=torch.float64)
    draw = Sampler(sampling(temperature=temperature, top_k=4))(logits, u)
    full = (logits / temperature).log_softmax(-1).gather(1, draw.tokens[:, None])[:, 0]
    assert torch.equal(draw.logps, full)
    assert (draw.behaviour_logps >= draw.logps).all()


def test_what_is_not_asked_for_is_not_computed():
    draw = Sampler(sampling(logprobs=False, top_k=2))(torch.zeros(2, 5), torch.zeros(2, dtype=torch.float64))
    assert draw.logps is None and draw.behaviour_logps is None


def test_frequencies_follow_the_probabilities():
    probabilities = torch.tensor([0.1, 0.6, 0.05, 0.25])
    u = torch.from_numpy(np.random.default_rng(0).random(20_000))
    draw = Sampler(sampling())(probabilities.log().expand(20_000, 4), u)
    found = torch.bincount(draw.tokens, minlength=4) / 20_000
    assert torch.allclose(found, probabilities, atol=0.012)
    assert not torch.allclose(found, probabilities.roll(1), atol=0.012)
