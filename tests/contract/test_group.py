"""The semantics lock of groups: what enters a digest, what does not, and which shapes are never born."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniverl.contract.group import Group
from miniverl.errors import ContractError
from tests.contract.drawn import crossed, group

ARRAYS = ("prompt_ids", "seeds", "lengths", "token_ids", "logps", "behaviour_logps", "rewards")
COLUMNS = ("token_ids", "logps", "behaviour_logps")

OTHER = {
    "id": "000000000004-ba9876543210",
    "cursor": 5,
    "policy_version": 3,
    "snapshot_digest": "6" * 64,
    "tensor_digest": "8" * 64,
    "prompt_row": 2,
    "prompt_digest": "a" * 64,
    "prompt_ids": [5, 6, 8],
    "data_source": "products",
    "ground_truth": None,
    "seeds": [11, 2**62 + 1],
    "lengths": [3, 2],
    "token_ids": [[8, 9, 2], [3, 0, 0]],
    "logps": [[-0.5, -0.25, -1.0], [-2.5, 0.0, 0.0]],
    "behaviour_logps": None,
    "temperature": 1.0,
    "stop_reasons": ("stop_token", "length"),
    "stop_matches": ("2", ""),
    "texts": ("42", " "),
    "reward_names": ("right",),
    "rewards": [[1.0], [1.0]],
}
"""Another value for every field."""


def test_the_digest_is_locked():
    """Changing this changes every recorded run: raise SCHEMA_VERSION, and say what becomes of old journals."""
    assert group().digest == "d0f3c8f4bad008fcb3dd2b65afa8befe43ab3a66904e1fb5f0ca0124967c5fd3"


def test_every_field_has_another_value_here():
    assert OTHER.keys() == {field.name for field in fields(Group)}


@pytest.mark.parametrize("field", OTHER)
def test_the_digest_moves_with_every_field(field):
    assert group(**{field: OTHER[field]}).digest != group().digest


@pytest.mark.parametrize("field", ["logps", "behaviour_logps", "rewards"])
def test_a_column_that_was_not_given_is_not_a_column_of_zeros(field):
    zeros = np.zeros_like(getattr(group(), field))
    assert group(**{field: None}).digest != group(**{field: zeros}).digest


@pytest.mark.parametrize("field", COLUMNS)
def test_what_lies_beyond_a_rows_length_does_not_enter_the_digest(field):
    column = np.array(getattr(group(), field))
    column[1, 1:] = 7
    assert group(**{field: column}).digest == group().digest


@given(st.integers(1, 4))
def test_wider_padding_is_the_same_group(more):
    wider = {field: np.pad(getattr(group(), field), ((0, 0), (0, more)), constant_values=9) for field in COLUMNS}
    assert group(**wider).digest == group().digest


def test_a_token_that_changes_rows_is_another_group():
    assert (
        group(lengths=[2, 2], token_ids=[[8, 9, 0], [2, 2, 0]]).digest != group(token_ids=[[8, 9, 2], [2, 0, 0]]).digest
    )


@pytest.mark.parametrize("field", ARRAYS)
def test_no_column_can_be_written_to_here_or_in_another_process(field):
    for owner in (group(), crossed(group())):
        with pytest.raises(ValueError, match="read-only"):
            getattr(owner, field)[...] = 0
        with pytest.raises(FrozenInstanceError):
            setattr(owner, field, None)


def test_a_group_is_the_same_in_another_process():
    assert crossed(group()).digest == group().digest


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("seeds", [11]),
        ("lengths", [3, 1, 1]),
        ("logps", [[-0.5, -0.25], [-2.0, 0.0]]),
        ("behaviour_logps", [[-0.5, -0.25, -1.0]]),
        ("rewards", [[1.0, 0.5], [0.0, 0.5]]),
        ("rewards", [1.0, 0.0]),
    ],
)
def test_a_column_of_another_shape_is_refused_by_name(field, value):
    with pytest.raises(ContractError, match=rf"Group\.{field}.*expected"):
        group(**{field: value})


@pytest.mark.parametrize("lengths", [[3, 0], [4, 1], [-1, 1]])
def test_a_length_outside_its_row_is_refused(lengths):
    with pytest.raises(ContractError, match=r"Group\.lengths.*outside 1\.\.3"):
        group(lengths=lengths)


def test_a_group_without_samples_is_refused():
    columns = dict.fromkeys(("stop_reasons", "stop_matches", "texts"), ())
    scores = dict.fromkeys(("logps", "behaviour_logps", "rewards"))
    with pytest.raises(ContractError, match=r"Group\.lengths"):
        group(seeds=[], lengths=[], token_ids=np.zeros((0, 3)), **columns, **scores)


@pytest.mark.parametrize("column", ["stop_reasons", "stop_matches", "texts"])
def test_a_column_that_lacks_a_row_is_refused(column):
    with pytest.raises(ContractError, match=rf"Group\.{column}"):
        group(**{column: getattr(group(), column)[:1]})


def test_a_group_counts_its_samples_and_tokens():
    assert (group().samples, group().response_tokens, group().longest) == (2, 4, 6)


def test_tokens_were_drawn_from_the_log_probs_themselves_when_nothing_was_cut():
    assert group().behaviour() is not None and group().behaviour().tolist() == group().behaviour_logps.tolist()
    uncut = group(behaviour_logps=None)
    assert uncut.behaviour() is uncut.logps
    assert group(logps=None, behaviour_logps=None).behaviour() is None


def test_a_trajectory_is_its_row_without_padding():
    short = group().trajectory(1)
    assert (short.response_ids.tolist(), short.ids.tolist()) == ([2], [5, 6, 7, 2])
    assert group().trajectory(0).ids.tolist() == [5, 6, 7, 8, 9, 2]
