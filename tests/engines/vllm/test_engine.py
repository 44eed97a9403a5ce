"""This file holds the tests of the vLLM backend on real servers: a warm one, and one whose owner is killed."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from miniverl.engines.base import METRICS
from miniverl.engines.vllm import leash
from miniverl.errors import EngineError, IdentityError, StateError
from tests.engines.vllm.served import END, Twins, answers, asked, tokens
from tests.engines.vllm.test_leash import alive, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    made = Twins(tmp_path_factory.mktemp("vllm"))
    yield made
    made.served.close()


def test_eight_policies_on_one_warm_server_each_answer_as_the_trainer_would(twins):
    before = None
    for version in range(9):  # the first, an adapter of zeros, starts the server
        policy = twins.synchronize(version)
        requests = asked(policy, temperature=0.0, samples=1)
        found, expected = answers(twins.served, requests), answers(twins.judge, requests)
        assert tokens(found) == tokens(expected) != before
        for name, group in found.items():
            np.testing.assert_allclose(group.logps, expected[name].logps, atol=5e-5, rtol=0)
            assert (group.texts, group.stop_reasons) == (expected[name].texts, expected[name].stop_reasons)
            assert group.snapshot_digest == policy.snapshot.digest
        before = tokens(found)
        effect = twins.served.adapter_effect()
        assert (effect == 0) == (version == 0)
    metrics = twins.served.metrics()
    assert metrics["server_starts"] == 1 and metrics["syncs"] == 9 and set(metrics) <= set(METRICS)


def test_samples_are_seeded_and_differ_from_each_other_and_from_greedy_ones(twins):
    policy = twins.synchronize(1)
    first = tokens(answers(twins.served, asked(policy, samples=4)))
    assert first == tokens(answers(twins.served, asked(policy, samples=4)))
    assert first != tokens(answers(twins.served, asked(policy, samples=4, run_seed=1)))
    greedy = tokens(answers(twins.served, asked(policy, samples=1, temperature=0.0)))
    assert all(len({tuple(row) for row in rows}) > 1 for rows in first.values())
    assert any(rows[0] != greedy[name][0] for name, rows in first.items())


@pytest.mark.parametrize("sampling", [{"temperature": 0.7}, {"temperature": 1.0, "top_p": 0.8, "top_k": 5}])
def test_log_probs_are_those_of_the_distribution_they_are_named_after(twins, sampling):
    policy = twins.synchronize(1)
    judged = {}
    for group in answers(twins.served, asked(policy, **sampling)).values():
        assert (group.logps is None) == ("top_p" in sampling)
        judged[group.id] = group
    for group in judged.values():
        expected = rescored(twins, group, sampling)
        for row, length in enumerate(group.lengths):
            np.testing.assert_allclose(group.behaviour()[row, :length], expected[row], atol=1e-4, rtol=0)


def rescored(twins, group, sampling):
    """Per row the log-probs of its tokens, from plain forward passes of the mirror."""
    import torch

    from tests.oracle.sampling import keep

    rows = []
    for index in range(group.samples):
        ids = torch.tensor(group.trajectory(index).ids)[None].long()
        with torch.inference_mode():
            logits = twins.mirror.module(ids).logits[0, len(group.prompt_ids) - 1 : -1]
        scores = (logits / sampling["temperature"]).log_softmax(-1).double().numpy()
        found = []
        for place, token in zip(scores, group.trajectory(index).response_ids, strict=True):
            kept = keep(place, top_k=sampling.get("top_k", 0), top_p=sampling.get("top_p", 1.0))
            found.append(place[token] - np.log(np.exp(place[kept]).sum()))
        rows.append(found)
    return rows


def test_responses_end_at_stop_tokens_and_stop_strings_and_keep_their_last_token(twins):
    policy = twins.synchronize(1)
    found = answers(twins.served, asked(policy, samples=4))
    rows = [(group, index) for group in found.values() for index in range(4)]
    ended = {int(g.trajectory(i).response_ids[-1]) for g, i in rows if g.stop_reasons[i] != "length"}
    assert ended == {END}
    free = answers(twins.served, asked(policy, temperature=0.0, samples=1, stop_token_ids=()))
    stop = max((group.texts[0] for group in free.values()), key=len)[2:4]
    asked_for = asked(policy, temperature=0.0, samples=1, stop_token_ids=(), stop=(stop,))
    found, expected = answers(twins.served, asked_for), answers(twins.judge, asked_for)
    assert tokens(found) == tokens(expected)
    assert [g.texts for g in found.values()] == [expected[name].texts for name in found]
    assert any(g.stop_reasons == ("stop_string",) for g in found.values())


def test_a_request_under_an_old_snapshot_is_refused_before_the_server_sees_it(twins):
    old = twins.synchronize(1)
    twins.synchronize(2)
    with pytest.raises(IdentityError, match="version 2"):
        twins.served.generate(asked(old))


def test_more_requests_than_slots_are_served_and_groups_come_as_they_finish(twins):
    policy = twins.synchronize(1)
    found = list(twins.served.generate(asked(policy, samples=4, prompts=20)))
    assert len({group.id for group in found}) == len(found) == 20


def test_a_generation_that_is_given_up_leaves_the_server_usable(twins):
    policy = twins.synchronize(1)
    stream = twins.served.generate(asked(policy, samples=4, prompts=20))
    next(stream)
    stream.close()
    assert len(answers(twins.served, asked(policy))) == 6


def test_the_death_of_the_server_is_an_error_that_says_so_and_nothing_of_it_is_left(twins):
    policy = twins.synchronize(3)
    processes = twins.served.processes()
    stream = twins.served.generate(asked(policy, samples=4, prompts=100, stop_token_ids=()))
    first = next(stream)
    os.kill(processes[0], signal.SIGKILL)
    with pytest.raises(EngineError, match=r"(?s)no longer answers.*server\.log"):
        list(stream)
    assert first.samples == 4
    until(lambda: alive(processes) == [])
    with pytest.raises(StateError, match=r"synchronize\(policy\)"):
        twins.served.generate(asked(policy))


def test_a_four_bit_student_is_served_dequantized_and_its_server_dies_with_its_owner(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.engines.vllm.served", str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    said = json.loads(next(line for line in owner.stdout if line.startswith("{")))
    assert said["equal"] and len(alive(said["processes"])) >= 2
    owner.kill()
    owner.wait()
    until(lambda: alive(said["processes"]) == [])
    assert leash.living(tmp_path / "processes.json") == []
