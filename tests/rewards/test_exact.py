"""An answer is right when it is the answer and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from miniverl.rewards.exact import exact_answer

blank = st.text(" \t\n", max_size=3)


@given(st.text(), blank, blank)
def test_white_space_around_an_answer_changes_nothing(answer, before, after):
    assert exact_answer(before + answer + after, answer)
    assert exact_answer(answer, before + answer + after)


@given(st.text(), st.text())
def test_another_answer_is_wrong(answer, other):
    assume(answer.strip() != other.strip())
    assert not exact_answer(answer, other)


@pytest.mark.parametrize("text", ["", "35", "3577", "357.", "0357", "+357", "3 57", "=357", "the sum is 357", "３５７"])
def test_near_the_answer_is_not_the_answer(text):
    assert not exact_answer(text, "357")
