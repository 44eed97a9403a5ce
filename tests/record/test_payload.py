"""This file holds the behaviour of payloads: a group comes back bit for bit, or its damage is named."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from miniverl.errors import RecordError
from miniverl.record.payload import from_bytes, to_bytes
from tests.record.drawn import group

TEXT = some.text(some.characters(exclude_categories=["Cs"]), max_size=12)


@some.composite
def groups(draw):
    samples, width = draw(some.integers(1, 8)), draw(some.integers(1, 6))
    floats = some.lists(some.floats(width=32), min_size=samples * width, max_size=samples * width).map(
        lambda values: np.array(values, np.float32).reshape(samples, width)
    )
    names = draw(some.lists(TEXT, max_size=3))
    scores = np.array(draw(some.lists(some.floats(width=32), min_size=samples, max_size=samples)), np.float32)
    return group(
        draw(some.integers(0, 10**9)),
        samples=samples,
        width=width,
        logps=draw(some.none() | floats),
        behaviour_logps=draw(some.none() | floats),
        texts=tuple(draw(TEXT) for _ in range(samples)),
        stop_matches=tuple(draw(TEXT) for _ in range(samples)),
        ground_truth=draw(some.none() | TEXT),
        temperature=draw(some.floats(0, 100)),
        reward_names=tuple(names),
        rewards=draw(some.none() | some.just(np.repeat(scores[:, None], len(names), axis=1))),
    )


@given(groups())
@settings(max_examples=60, deadline=None)
def test_a_group_comes_back_bit_for_bit(drawn):
    back = from_bytes(to_bytes(drawn), digest=drawn.digest, group_id=drawn.id)
    assert back.digest == drawn.digest
    assert back.texts == drawn.texts and (back.rewards is None) == (drawn.rewards is None)


def test_what_lies_beyond_a_row_is_not_kept():
    wide = group(0, width=3, lengths=np.array([1, 2]))
    assert from_bytes(to_bytes(wide), digest=wide.digest, group_id=wide.id).token_ids.shape == (2, 2)


def test_any_arrow_reader_opens_it_one_row_per_trajectory():
    drawn = group(3, samples=4)
    table = pa.ipc.open_stream(to_bytes(drawn)).read_all()
    assert table.num_rows == 4
    assert table["token_ids"].to_pylist()[1] == drawn.trajectory(1).response_ids.tolist()
    assert table["text"].to_pylist() == list(drawn.texts)
    assert b'"ground_truth":"42"' in table.schema.metadata[b"group"]


@pytest.mark.parametrize("samples", [1, 3])
def test_flipped_bytes_are_an_error_that_names_the_group_or_no_change_at_all(samples):
    drawn = group(5, samples=samples)
    payload, silent = to_bytes(drawn), 0
    for place in range(0, len(payload), 3):
        damaged = bytearray(payload)
        damaged[place] ^= 0x41
        try:
            back = from_bytes(bytes(damaged), digest=drawn.digest, group_id=drawn.id)
        except RecordError as error:
            assert drawn.id in str(error)
        else:
            silent += 1
            assert back.digest == drawn.digest
    assert silent < len(payload) // 3  # padding and Arrow's own bookkeeping, not columns


def test_a_payload_cut_short_is_an_error():
    drawn = group(5)
    payload = to_bytes(drawn)
    for length in range(0, len(payload) - 9, 7):  # the last bytes only say that the stream ends
        with pytest.raises(RecordError, match=drawn.id):
            from_bytes(payload[:length], digest=drawn.digest, group_id=drawn.id)


def test_a_zero_filled_payload_is_an_error():
    drawn = group(5)
    with pytest.raises(RecordError, match=drawn.id):
        from_bytes(bytes(len(to_bytes(drawn))), digest=drawn.digest, group_id=drawn.id)
