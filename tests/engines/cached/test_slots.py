"""This file holds the tests of the rows' state on the device."""

import pytest
import torch

from miniverl.contract.request import Sampling
from miniverl.engines.cached.sampler import Draw
from miniverl.engines.cached.slots import Slots
from tests.oracle.sampling import uniform


def make(*, limit=3, rows=4, **fields):
    sampling = Sampling(
        **{"temperature": 1.0, "top_k": 2, "max_new_tokens": limit, "stop_token_ids": (7, 99), **fields}
    )
    slots = Slots(sampling, rows=rows, vocabulary=10, device=torch.device("cpu"))
    slots.admit([0, 1], tokens=[4, 5], starts=[2, 6], seeds=[11, 12])
    return slots


def drawn(*tokens):
    logps = torch.tensor([-float(token) for token in tokens])
    return Draw(tokens=torch.tensor(tokens), logps=logps, behaviour_logps=logps / 2)


def test_a_new_sample_is_fed_its_last_prompt_token_at_its_position():
    tokens, positions, uniforms = make().feed(2)
    assert tokens.tolist() == [4, 5] and positions.tolist() == [2, 6]
    assert uniforms.tolist() == [uniform(11, 0), uniform(12, 0)]


def test_each_token_moves_position_and_counter():
    slots = make()
    slots.record(drawn(1, 2, 0, 0))
    tokens, positions, uniforms = slots.feed(2)
    assert tokens.tolist() == [1, 2] and positions.tolist() == [3, 7]
    assert uniforms.tolist() == [uniform(11, 1), uniform(12, 1)]


def test_a_stop_token_ends_a_row_and_belongs_to_it():
    slots = make()
    slots.record(drawn(1, 7, 0, 0))
    assert slots.alive.tolist() == [True, False, False, False]
    [sample] = slots.read([1])
    assert sample.tokens.tolist() == [7] and sample.logps.tolist() == [-7.0]


def test_the_limit_ends_a_row():
    slots = make(limit=2)
    slots.record(drawn(1, 1, 0, 0))
    slots.record(drawn(2, 2, 0, 0))
    assert not slots.alive.any()
    assert slots.read([0])[0].tokens.tolist() == [1, 2]


@pytest.mark.parametrize("extra", [1, 5])
def test_what_a_finished_row_goes_on_drawing_is_never_read(extra):
    slots = make()
    slots.record(drawn(1, 7, 0, 0))
    position = slots.feed(2)[1][1].item()
    for _ in range(extra):
        slots.record(drawn(1, 3, 3, 3))
    [sample] = slots.read([1])
    assert sample.tokens.tolist() == [7] and sample.behaviour_logps.tolist() == [-3.5]
    assert slots.feed(2)[1][1].item() == position


def test_what_was_drawn_so_far_can_be_looked_at():
    slots = make()
    slots.record(drawn(1, 7, 0, 0))
    slots.record(drawn(2, 3, 0, 0))
    assert slots.ids([1, 0]) == [[7], [1, 2]]


def test_a_row_ended_from_outside_draws_no_more():
    slots = make()
    slots.record(drawn(1, 2, 0, 0))
    slots.end([1])
    slots.record(drawn(3, 3, 0, 0))
    assert slots.alive.tolist() == [True, False, False, False] and slots.ids([1]) == [[2]]


def test_a_moved_row_goes_on_and_leaves_nothing_alive_behind():
    slots = make()
    slots.record(drawn(1, 2, 0, 0))
    slots.move([(1, 0)])
    assert slots.alive.tolist() == [True, False, False, False]
    assert [column[0].item() for column in slots.feed(1)] == [2, 7, uniform(12, 1)]
    slots.record(drawn(8))
    assert slots.read([0])[0].tokens.tolist() == [2, 8]


def test_a_reused_slot_remembers_nothing():
    slots = make()
    slots.record(drawn(1, 7, 0, 0))
    slots.admit([1], tokens=[9], starts=[0], seeds=[13])
    slots.record(drawn(2, 3, 0, 0))
    assert slots.read([1])[0].tokens.tolist() == [3]
    assert slots.feed(2)[2][1].item() == uniform(13, 1)


def test_log_probs_that_nobody_asked_for_are_not_kept():
    [sample] = make(logprobs=False).read([0])
    assert sample.logps is None and sample.behaviour_logps is None
