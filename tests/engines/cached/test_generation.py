"""This file holds the tests of one generation, turn by turn."""

import torch

from miniverl.engines.cached.decoder import Decoder
from miniverl.engines.cached.generation import COUNTERS, Generation
from tests.engines.tiny import VOCABULARY, TinyModel, decode, policy, requests


def start(*lengths, samples=2, slots=4, stride=1):
    model = TinyModel()
    model.load(policy())
    with torch.inference_mode():
        decoder = Decoder(model.module, vocabulary=VOCABULARY)
        cache = decoder.cache(rows=slots, length=64)
    asked = requests(*lengths, samples=samples, max_new_tokens=4, stop_token_ids=())
    counts = dict.fromkeys(COUNTERS, 0)
    groups = [asked[first : first + samples] for first in range(0, len(asked), samples)]
    made = Generation(groups, decoder=decoder, cache=cache, stride=stride, counts=counts, decode=decode)
    return made, counts


def test_a_turn_decodes_one_token_of_every_live_row():
    generation, counts = start(3, 5)
    assert generation.turn() == []
    assert (counts["prefills"], counts["decode_steps"], counts["row_steps"]) == (2, 1, 4)
    assert counts["physical_batches"] == 2  # one for both prompts, one for the token


def test_groups_come_back_in_the_turn_that_completes_them():
    generation, counts = start(3, 5, 9)
    turns = []
    while generation.unfinished:
        turns.append([group.requests[0].cursor for group in generation.turn()])
    assert turns == [[], [], [], [0, 1], [], [], [], [2]]
    assert counts["generated_tokens"] == 24


def test_a_longer_stride_overshoots_and_returns_the_same():
    plain, _ = start(3, 5)
    strided, counts = start(3, 5, stride=3)
    expected = [group for _ in range(4) for group in plain.turn()]
    found = [group for _ in range(2) for group in strided.turn()]
    assert not strided.unfinished and counts["decode_steps"] == 6
    for one, other in zip(expected, found, strict=True):
        for left, right in zip(one.in_order(), other.in_order(), strict=True):
            assert left.tokens.tolist() == right.tokens.tolist() and (left.logps == right.logps).all()


def test_fewer_rows_are_computed_once_the_queue_is_empty():
    generation, counts = start(3, 3, 3, 3, 3, samples=1, slots=8)
    while generation.unfinished:
        generation.turn()
    assert counts["row_steps"] == 8 * 4
    small, counts = start(3, samples=1, slots=8)
    while small.unfinished:
        small.turn()
    assert counts["row_steps"] == 4 * 4
