"""The sums: the split of a pair is a fact about the pair, and no seed can move it."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniverl.data import sums
from miniverl.errors import DataError

operands = st.integers(0, 999)


@given(operands, operands)
def test_a_pair_and_its_mirror_image_fall_into_one_split(a, b):
    assert sums.bucket(a, b) == sums.bucket(b, a) in sums.SPLITS


def test_the_split_of_a_pair_never_changes():
    """Changing this mixes held-out sums into what the packaged models were trained on."""
    found = [sums.bucket(*pair) for pair in ((12, 345), (5, 6), (6, 6), (4, 4), (999, 999))]
    assert found == ["train", "validation", "heldout", "validation", "train"]


def test_four_of_five_pairs_are_for_training():
    shares = Counter(sums.bucket(a, b) for a in range(0, 1000, 7) for b in range(a, 1000, 7))
    total = sum(shares.values())
    assert 0.78 < shares["train"] / total < 0.82
    assert 0.08 < shares["validation"] / total < 0.12
    assert 0.08 < shares["heldout"] / total < 0.12


def test_no_sum_is_in_two_splits_whatever_the_seeds():
    drawn = {
        split: {row["prompt"][0]["content"] for seed in (0, 1) for row in sums.rows(split, count=900, seed=seed)}
        for split in sums.SPLITS
    }
    for split, other in (("train", "validation"), ("train", "heldout"), ("validation", "heldout")):
        assert not drawn[split] & drawn[other]


def test_rows_are_distinct_and_their_answers_right():
    rows = sums.rows("train", count=3000, seed=3)
    questions = [row["prompt"][0]["content"] for row in rows]
    assert len(set(questions)) == 3000
    for question, row in zip(questions, rows, strict=True):
        a, b = question.split("+")
        assert row["reward_model"] == {"style": "rule", "ground_truth": str(int(a) + int(b))}
        assert row["extra_info"]["split"] == "train" and sums.bucket(int(a), int(b)) == "train"
    assert [row["extra_info"]["index"] for row in rows] == list(range(3000))


def test_operands_of_one_two_and_three_digits_are_equally_likely():
    lengths = Counter(len(str(a)) for a, _ in islice(sums.pairs("train", seed=0), 3000))
    assert all(850 < lengths[digits] < 1150 for digits in (1, 2, 3))


def test_the_seed_decides_the_rows():
    assert sums.rows("train", count=50, seed=1) == sums.rows("train", count=50, seed=1)
    assert sums.rows("train", count=50, seed=1) != sums.rows("train", count=50, seed=2)


def test_every_split_holds_the_most_rows_that_may_be_asked():
    tenth = Counter(sums.bucket(a, b) for a in range(0, 1000, 10) for b in range(1000))
    assert 10 * min(tenth.values()) > 1.5 * sums.MOST_ROWS


@pytest.mark.parametrize("count", [0, -1, sums.MOST_ROWS + 1])
def test_a_count_that_cannot_be_drawn_is_refused_with_the_range(count):
    with pytest.raises(DataError, match=f"{count}.*1 to {sums.MOST_ROWS}"):
        sums.rows("train", count=count, seed=0)
