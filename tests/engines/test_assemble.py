"""This file holds the tests of how finished samples become a group."""

import numpy as np

from miniverl.engines.assemble import Sample, assemble
from tests.engines.tiny import STOPS, decode, policy, requests


def sample(*tokens, behaviour=False):
    logps = -np.arange(1, len(tokens) + 1, dtype=np.float32)
    return Sample(tokens=np.array(tokens), logps=logps, behaviour_logps=logps / 2 if behaviour else None)


def group_of(*samples, **fields):
    asked = requests(6, samples=len(samples), **fields)
    return asked, assemble(asked, samples, snapshot=policy().snapshot, decode=decode)


def test_a_group_carries_its_prompt_its_policy_and_its_seeds():
    asked, group = group_of(sample(1), sample(2))
    snapshot, prompt = policy().snapshot, asked[0].prompt
    assert (group.id, group.cursor) == (asked[0].group_id, 0)
    assert (group.policy_version, group.snapshot_digest) == (3, snapshot.digest)
    assert group.tensor_digest == snapshot.tensor_digest
    assert group.prompt_ids.tolist() == prompt.ids.tolist() and group.prompt_digest == prompt.digest
    assert (group.prompt_row, group.data_source, group.ground_truth) == (0, "d", "g")
    assert group.seeds.tolist() == [request.seed for request in asked]


def test_rows_are_padded_to_the_longest():
    _, group = group_of(sample(1, 2, 3), sample(4), top_k=3)
    assert group.lengths.tolist() == [3, 1]
    assert group.token_ids.tolist() == [[1, 2, 3], [4, 0, 0]]
    assert group.logps.tolist() == [[-1, -2, -3], [-1, 0, 0]]


def test_the_stop_token_belongs_to_the_response_but_not_to_its_text():
    _, group = group_of(sample(1, STOPS[0]), sample(STOPS[1]), sample(1, 2))
    assert group.lengths.tolist() == [2, 1, 2]
    assert group.stop_reasons == ("stop_token", "stop_token", "length")
    assert group.stop_matches == (str(STOPS[0]), str(STOPS[1]), "")
    assert group.texts == ("1", "", "1 2")


def test_behaviour_log_probs_are_kept_apart_when_something_was_cut():
    _, whole = group_of(sample(1, 2))
    _, cut = group_of(sample(1, 2, behaviour=True), top_p=0.9)
    assert whole.behaviour_logps is None and whole.behaviour() is whole.logps
    assert cut.behaviour_logps.tolist() == [[-0.5, -1.0]]


def test_the_temperature_is_that_of_the_log_probs():
    assert group_of(sample(1), temperature=0.0)[1].temperature == 1.0
    assert group_of(sample(1), temperature=0.7)[1].temperature == 0.7


def test_a_stop_string_cuts_the_text_and_not_the_ids():
    whole = sample(1, 23, 4, 5, behaviour=True).cut(3, "3 4")
    _, group = group_of(whole, sample(1, 2, behaviour=True), top_k=3, stop=("3 4",))
    assert group.token_ids.tolist() == [[1, 23, 4], [1, 2, 0]]
    assert group.logps[0].tolist() == [-1, -2, -3] and group.behaviour_logps[0].tolist() == [-0.5, -1, -1.5]
    assert group.stop_reasons == ("stop_string", "length") and group.stop_matches == ("3 4", "")
    assert group.texts == ("1 2", "1 2")
