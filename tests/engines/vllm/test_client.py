"""This file holds the tests of what is asked of a server and how its answers are read."""

from miniverl.contract.request import Sampling
from miniverl.engines.vllm.client import completion, sample_of
from tests.engines.tiny import requests


def test_a_request_carries_ids_its_own_seed_and_every_setting():
    [request] = requests(5, samples=1, temperature=0.7, top_p=0.9, top_k=3, stop=("x",), stop_token_ids=(7, 9))
    body = completion(request, model="v1")
    assert body["prompt"] == request.prompt.ids.tolist() and body["seed"] == request.seed
    assert (body["temperature"], body["top_p"], body["top_k"], body["max_tokens"]) == (0.7, 0.9, 3, 12)
    assert body["stop"] == ["x"] and body["stop_token_ids"] == [7, 9] and body["ignore_eos"]
    assert body["logprobs"] == 0 and body["model"] == "v1"
    [quiet] = requests(5, samples=1, logprobs=False)
    assert "logprobs" not in completion(quiet, model="v1")


def answer(**changes):
    scores = {"token_logprobs": [-1.0, -2.0]}
    return {"token_ids": [4, 7], "logprobs": scores, "stop_reason": 7, **changes}


def test_log_probs_of_a_whole_distribution_are_both_kinds():
    sample = sample_of(answer(), Sampling(temperature=0.7, max_new_tokens=4, stop_token_ids=(7,)))
    assert sample.tokens.tolist() == [4, 7] and sample.logps.tolist() == [-1, -2]
    assert sample.behaviour_logps is None and sample.stop is None


def test_log_probs_of_a_cut_distribution_are_the_behaviours_alone():
    sampling = Sampling(temperature=0.7, top_p=0.9, max_new_tokens=4, stop_token_ids=(7,))
    sample = sample_of(answer(), sampling)
    assert sample.logps is None and sample.behaviour_logps.tolist() == [-1, -2]


def test_a_stop_string_is_told_from_a_stop_token():
    sampling = Sampling(temperature=1.0, max_new_tokens=4, stop_token_ids=(), stop=("ab",), logprobs=False)
    sample = sample_of(answer(stop_reason="ab"), sampling)
    assert sample.stop == "ab" and sample.logps is None
