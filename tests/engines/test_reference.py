"""This file holds the tests of the oracle against the plainest possible computation."""

import numpy as np
import pytest
import torch

from miniverl.engines import reference
from miniverl.engines.reference import ReferenceEngine
from tests.engines.tiny import STOPS, VOCABULARY, TinyModel, decode, policy, requests
from tests.oracle import sampling as twin


@pytest.fixture(scope="module")
def engine():
    engine = ReferenceEngine(TinyModel(), decode=decode)
    engine.synchronize(policy())
    return engine


@pytest.fixture(scope="module")
def model():
    model = TinyModel()
    model.load(policy())
    return model.module


@torch.inference_mode()
def scores(model, ids, temperature=1.0):
    logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1, :VOCABULARY]
    return (logits / temperature).log_softmax(-1).numpy()


@pytest.mark.parametrize(
    "fields", [{}, {"temperature": 0.7, "top_p": 0.8}, {"top_k": 3}, {"temperature": 1.5, "top_k": 9, "top_p": 0.5}]
)
def test_every_token_is_the_one_its_uniform_decides(engine, model, fields):
    asked = requests(4, 9, samples=2, **fields)
    sampling = asked[0].sampling
    rows = [group.trajectory(index) for group in engine.generate(asked) for index in range(2)]
    for request, row in zip(asked, rows, strict=True):
        ids = request.prompt.ids.tolist()
        for place, token in enumerate(row.response_ids.tolist()):
            logps = scores(model, ids, sampling.temperature)
            kept = twin.keep(logps, top_k=sampling.top_k, top_p=sampling.top_p)
            expected, behaviour = twin.pick(logps, kept, twin.uniform(request.seed, place))
            assert token == expected
            assert row.group.logps[row.index, place] == pytest.approx(logps[token], abs=1e-5)
            assert row.group.behaviour()[row.index, place] == pytest.approx(behaviour, abs=1e-5)
            ids.append(token)


def test_greedy_takes_the_likeliest_and_reports_at_temperature_one(engine, model):
    asked = requests(6, samples=1, temperature=0.0)
    [group] = engine.generate(asked)
    ids = asked[0].prompt.ids.tolist()
    for token, logp in zip(group.token_ids[0].tolist(), group.logps[0], strict=True):
        logps = scores(model, ids)
        assert token == logps.argmax() and logp == pytest.approx(logps.max(), abs=1e-5)
        ids.append(token)


def test_a_response_ends_with_its_stop_token_or_at_its_limit(engine):
    for group in engine.generate(requests(3, 4, 5, 6, max_new_tokens=20)):
        for index, reason in enumerate(group.stop_reasons):
            tokens = group.trajectory(index).response_ids.tolist()
            assert not set(tokens[:-1]) & set(STOPS)
            assert (tokens[-1] in STOPS) == (reason == "stop_token")
            assert reason == "stop_token" or len(tokens) == 20


def test_every_token_costs_one_pass(engine):
    before = engine.metrics()["physical_batches"]
    done = list(engine.generate(requests(3, 4)))
    assert engine.metrics()["physical_batches"] - before == sum(group.response_tokens for group in done)


def test_ids_are_kept_as_the_loops_keep_them():
    logps = np.log(np.array([0.1, 0.3, 0.1, 0.3, 0.2]))
    for top_k in range(6):
        for top_p in (0.2, 0.3, 0.5, 0.65, 0.9, 1.0):
            sampling = requests(1, top_k=top_k, top_p=top_p)[0].sampling
            assert reference.kept_ids(logps, sampling).tolist() == twin.keep(logps, top_k=top_k, top_p=top_p)
