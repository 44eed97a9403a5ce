"""This file holds the tests of hf_cached against hf_reference, and of its promise of equal bits."""

import itertools
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from miniverl.contract.request import requests_for
from miniverl.engines.base import METRICS
from miniverl.engines.cached.engine import CachedEngine
from miniverl.engines.reference import ReferenceEngine
from miniverl.errors import ConfigError, ContractError, EngineError, IdentityError, StateError
from tests.engines.tiny import ARCHITECTURES, TinyModel, decode, policy, prompts, requests

LENGTHS = (1, 5, 17, 150, 8, 9, 2)
"""From one token to more than a chunk of prefill."""
TOLERANCE = 5e-5
SAMPLINGS = {
    "greedy": {"temperature": 0.0},
    "plain": {},
    "cool_nucleus": {"temperature": 0.7, "top_p": 0.9},
    "top_k": {"top_k": 5},
}


def cached(architecture="qwen3", *, slots=8, deterministic=True, synchronized=True, text=decode, max_length=190):
    engine = CachedEngine(
        TinyModel(architecture), decode=text, slots=slots, max_length=max_length, deterministic=deterministic
    )
    if synchronized:
        engine.synchronize(policy(architecture))
    return engine


def groups(engine, asked):
    return {group.id: group for group in engine.generate(asked)}


def digests(engine, asked):
    return {name: group.digest for name, group in groups(engine, asked).items()}


def split(asked):
    return [tuple(members) for _, members in itertools.groupby(asked, key=lambda request: request.group_id)]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_tokens_and_log_probs_are_those_of_the_reference(architecture, sampling):
    oracle = ReferenceEngine(TinyModel(architecture), decode=decode)
    oracle.synchronize(policy(architecture))
    asked = requests(*LENGTHS, samples=2, snapshot=policy(architecture).snapshot, **SAMPLINGS[sampling])
    expected = groups(oracle, asked)
    reasons = {reason for group in expected.values() for reason in group.stop_reasons}
    assert reasons == {"length", "stop_token"} or sampling == "greedy"
    for slots, order in ((4, asked), (16, sum(reversed(split(asked)), ()))):
        found = groups(cached(architecture, slots=slots), order)
        assert found.keys() == expected.keys()
        for name, group in found.items():
            compare(group, expected[name])


def compare(group, oracle):
    assert group.lengths.tolist() == oracle.lengths.tolist()
    assert group.token_ids.tolist() == oracle.token_ids.tolist()
    np.testing.assert_allclose(group.logps, oracle.logps, atol=TOLERANCE, rtol=0)
    assert (group.behaviour_logps is None) == (oracle.behaviour_logps is None)
    np.testing.assert_allclose(group.behaviour(), oracle.behaviour(), atol=TOLERANCE, rtol=0)
    assert (group.stop_reasons, group.stop_matches, group.texts) == (
        oracle.stop_reasons,
        oracle.stop_matches,
        oracle.texts,
    )


def test_another_policy_draws_other_tokens():
    engine = cached()
    before = groups(engine, requests(*LENGTHS))
    other = policy(version=3, seed=1)
    engine.synchronize(other)
    after = groups(engine, requests(*LENGTHS, snapshot=other.snapshot))
    assert all(before[name].token_ids.tolist() != after[name].token_ids.tolist() for name in before)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("sampling", ["plain", "cool_nucleus"])
def test_a_group_is_the_same_bits_whoever_shares_the_batch(architecture, sampling):
    snapshot = policy(architecture).snapshot
    asked = requests(*LENGTHS, 33, 64, 65, 130, max_new_tokens=20, snapshot=snapshot, **SAMPLINGS[sampling])
    expected = digests(cached(architecture, slots=16), asked)
    parts = split(asked)
    shuffled = [parts[i] for i in np.random.default_rng(0).permutation(len(parts))]
    assert digests(cached(architecture, slots=4), asked) == expected
    assert digests(cached(architecture, slots=6), sum(shuffled, ())) == expected
    for missing in (shuffled[:1], shuffled[1:4], shuffled[4:]):  # what recovery asks for
        assert digests(cached(architecture, slots=8), sum(missing, ())).items() <= expected.items()


def test_a_sample_is_the_same_bits_for_any_number_of_siblings():
    alone, four = (groups(cached(), requests(*LENGTHS, samples=n)) for n in (1, 4))
    for name, group in alone.items():
        length = group.lengths[0]
        assert length == four[name].lengths[0]
        assert (group.token_ids[0, :length] == four[name].token_ids[0, :length]).all()
        assert (group.logps[0, :length] == four[name].logps[0, :length]).all()


def test_deterministic_sampling_with_two_threads_is_refused():
    engine = cached(synchronized=False)
    torch.set_num_threads(2)
    try:
        with pytest.raises(ConfigError, match="threads: 1"):
            engine.synchronize(policy())
        cached(deterministic=False)
    finally:
        torch.set_num_threads(1)


def test_the_same_prompt_twice_gets_different_samples_and_equal_seeds_equal_ones():
    [(_, prompt)] = prompts(12)
    twice = [(0, prompt), (1, prompt)]
    sampling = requests(12)[0].sampling
    asked = requests_for(twice, policy().snapshot, samples=4, sampling=sampling, run_seed=0)
    first, second = groups(cached(), asked).values()
    assert first.prompt_digest == second.prompt_digest
    assert first.token_ids.tolist() != second.token_ids.tolist()
    assert digests(cached(), asked) == digests(cached(), asked)
    other = requests_for(twice, policy().snapshot, samples=4, sampling=sampling, run_seed=1)
    assert groups(cached(), other)[first.id].token_ids.tolist() != first.token_ids.tolist()


def test_a_prompt_is_prefilled_once_for_all_its_samples():
    engine = cached(slots=4)
    groups(engine, requests(*LENGTHS, samples=6))
    metrics = engine.metrics()
    assert metrics["prefills"] == len(LENGTHS)
    assert metrics["physical_batches"] == metrics["decode_steps"] + 2  # one batch of prompts, in two chunks


def test_finished_rows_are_refilled_so_that_a_pass_is_hardly_ever_wasted():
    engine = cached(slots=4)
    done = groups(engine, requests(*[9] * 12, samples=3, max_new_tokens=40, stop_token_ids=tuple(range(6))))
    lengths = np.concatenate([group.lengths for group in done.values()])
    static = sum(chunk.max() for chunk in lengths.reshape(-1, 4))
    metrics = engine.metrics()
    assert metrics["decode_steps"] < 0.75 * static
    assert metrics["slot_occupancy"] > 0.8
    assert metrics["generated_tokens"] == lengths.sum()


def test_groups_are_handed_out_while_others_are_still_decoding():
    engine = cached(slots=4)
    stream = engine.generate(requests(5, 5, 5, samples=4, stop_token_ids=()))
    assert next(stream).cursor == 0
    assert engine.metrics()["decode_steps"] == 12
    assert [group.cursor for group in stream] == [1, 2]


def test_reading_stops_back_rarely_changes_nothing_that_is_returned():
    expected = digests(cached(), requests(*LENGTHS, max_new_tokens=20))
    engine = cached()
    engine._stride = 8
    assert digests(engine, requests(*LENGTHS, max_new_tokens=20)) == expected


def test_responses_fill_a_slot_to_its_last_place():
    engine = cached()
    [group] = engine.generate(requests(150, samples=1, max_new_tokens=40, stop_token_ids=()))
    assert group.lengths.tolist() == [40]
    with pytest.raises(ContractError, match="max_length of 190"):
        engine.generate(requests(151, samples=1, max_new_tokens=40))


def test_log_probs_are_left_out_when_not_asked_for():
    [group] = cached().generate(requests(5, logprobs=False, top_k=3))
    assert group.logps is None and group.behaviour_logps is None
    [scored] = cached().generate(requests(5, top_k=3))
    assert group.token_ids.tolist() == scored.token_ids.tolist()


def test_a_request_under_an_old_snapshot_is_refused_before_the_model_runs():
    engine = cached()
    engine.synchronize(policy(version=4))
    with pytest.raises(IdentityError, match="version 4"):
        engine.generate(requests(5, snapshot=policy(version=3).snapshot))
    assert engine.metrics()["physical_batches"] == 0


def test_a_generation_that_was_overtaken_ends_and_the_next_one_is_clean():
    engine = cached(slots=4)
    asked = requests(5, 6, 7, 8, max_new_tokens=9)
    expected = digests(cached(slots=4), asked)
    abandoned = engine.generate(asked)
    next(abandoned)
    assert digests(engine, asked) == expected
    with pytest.raises(StateError, match="ended by a later call"):
        list(abandoned)


def test_an_engine_that_slept_wakes_to_the_same_bits():
    engine = cached()
    expected = digests(engine, requests(*LENGTHS))
    engine.sleep()
    engine.wake()
    with pytest.raises(StateError, match=r"synchronize\(policy\) first"):
        engine.generate(requests(5))
    engine.synchronize(policy())
    assert digests(engine, requests(*LENGTHS)) == expected


def test_no_requests_are_no_groups():
    assert list(cached().generate(())) == []


PIECES = [bytes([letter]) for letter in b"abcdefghijk .\n"] + [
    b"\xc3", b"\xa9", b"\xa8", b"\xf0\x9f", b"\x99\x82", b"ab", b" c", b"", b"d.", b"\xc3\xa9e", b"k\xc3", b"zz",
]  # fmt: skip
"""What the ids of a byte-level vocabulary stand for: letters, halves of characters, nothing, and longer pieces."""


def as_bytes(ids):
    return b"".join(PIECES[token % len(PIECES)] for token in ids).decode("utf-8", errors="replace")


STOP_STRINGS = {
    "across tokens": ("ea", "kd"),
    "a character of two tokens": ("é",),
    "a character of two tokens and more": ("ék", "🙂", "éef"),
    "one that contains another": ("zz", "z", "azz"),
    "hardly ever": ("abcdefgh",),
}


@pytest.mark.parametrize("stop", STOP_STRINGS.values(), ids=STOP_STRINGS)
def test_stop_strings_end_responses_where_the_reference_ends_them(stop):
    asked = requests(1, 17, 150, 3, samples=3, max_new_tokens=30, stop=stop, stop_token_ids=(7,))
    oracle = ReferenceEngine(TinyModel(), decode=as_bytes)
    oracle.synchronize(policy())
    expected = groups(oracle, asked)
    engine = cached(text=as_bytes)
    for stride in (1, 8):
        engine._stride = stride
        for name, group in groups(engine, asked).items():
            compare(group, expected[name])
    reasons = {reason for group in expected.values() for reason in group.stop_reasons}
    assert ("stop_string" in reasons) == (stop != STOP_STRINGS["hardly ever"]) and "stop_token" in reasons


def test_a_stop_string_may_end_a_response_with_its_last_token():
    [free] = cached(text=as_bytes).generate(requests(9, samples=1, max_new_tokens=12, stop_token_ids=()))
    last = next(text for length in range(1, 9) if (text := free.texts[0][-length:]) not in free.texts[0][:-1])
    asked = requests(9, samples=1, max_new_tokens=12, stop_token_ids=(), stop=(last,))
    [group] = cached(text=as_bytes).generate(asked)
    assert group.lengths.tolist() == [12] and group.stop_reasons == ("stop_string",)
    assert group.texts[0] == free.texts[0].removesuffix(last)


@contextmanager
def address_space(spare):
    """No more than this many bytes beyond what the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_slots_are_halved_until_memory_suffices_and_results_stay():
    asked = requests(*LENGTHS, max_new_tokens=9)
    expected = digests(cached(slots=8), asked)
    engine = cached(slots=2048, max_length=4096)  # 4 GiB of keys and values
    with address_space(2**30):
        assert digests(engine, asked) == expected
        metrics = engine.metrics()
        assert metrics["downshifts"] >= 2 and metrics["slots"] == 2048 >> int(metrics["downshifts"])
        assert digests(engine, asked) == expected
    assert engine.metrics()["downshifts"] == metrics["downshifts"]


def test_memory_that_ends_halfway_costs_no_group_and_doubles_none():
    asked = requests(*LENGTHS, *LENGTHS, 33, 40)
    expected = digests(cached(slots=8), asked)
    engine = cached(slots=16)
    stream = engine.generate(asked)
    found = [next(stream)]
    prefill, calls = engine._decoder.prefill, []

    def short_once(ids):
        calls.append(len(ids))
        if len(calls) == 1:
            raise torch.OutOfMemoryError("no memory left")
        return prefill(ids)

    engine._decoder.prefill = short_once
    found += stream
    assert {group.id: group.digest for group in found} == expected and len(found) == len(expected)
    assert engine.metrics()["downshifts"] == 1 and engine.metrics()["slots"] == 8


def test_memory_for_fewer_than_four_rows_is_an_error_with_the_numbers():
    engine = cached(slots=4, max_length=500_000)
    with address_space(2**28), pytest.raises(EngineError, match=r"4 rows of 500000 tokens.*max_new_tokens"):
        list(engine.generate(requests(5)))


def test_another_error_is_not_taken_for_a_lack_of_memory():
    engine = cached()
    list(engine.generate(requests(5)))
    engine._decoder._model.layers[0].self_attn.q_proj.weight = torch.nn.Parameter(torch.zeros(64, 63))
    with pytest.raises(RuntimeError, match="shapes"):
        list(engine.generate(requests(5)))


def test_the_engine_counts_what_it_did():
    engine = cached()
    groups(engine, requests(*LENGTHS))
    metrics = engine.metrics()
    assert set(metrics) <= set(METRICS)
    assert metrics["syncs"] == 1 and metrics["slots"] == 8 and metrics["downshifts"] == 0
    assert 0 < metrics["seconds_first_token"] < metrics["seconds_prefill"] + metrics["seconds_decode"]
    assert metrics["peak_bytes"] > 2**20 and metrics["seconds_sync"] > 0
