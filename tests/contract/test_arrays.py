"""Arrays of the contract cannot be written through, and padding is left out row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniverl.contract.arrays import frozen, valid


@pytest.mark.parametrize("values", [[1, 2, 3], np.arange(3), np.arange(3, dtype=np.int32), np.arange(6)[::2]])
def test_a_frozen_array_is_read_only_contiguous_and_of_the_type_asked_for(values):
    array = frozen(values, np.int32)
    assert array.dtype == np.int32 and array.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 9


def test_what_fits_already_is_not_copied_and_its_owner_may_go_on_writing():
    own = np.arange(3, dtype=np.int32)
    assert np.shares_memory(frozen(own, np.int32), own)
    assert own.flags.writeable


def test_a_frozen_array_is_taken_as_it_is():
    array = frozen([1.0], np.float32)
    assert frozen(array, np.float32) is array


def test_big_endian_numbers_keep_their_values():
    assert frozen(np.array([1, 256], dtype=">i4"), np.int32).tolist() == [1, 256]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5))
def test_valid_entries_are_each_rows_own_one_row_after_another(lengths):
    rows = np.arange(len(lengths) * 5).reshape(-1, 5)
    expected = [entry for row, length in zip(rows.tolist(), lengths, strict=True) for entry in row[:length]]
    assert valid(rows, np.array(lengths)).tolist() == expected


def test_columns_beside_the_positions_stay_together():
    rows = np.arange(12).reshape(2, 3, 2)
    assert valid(rows, np.array([1, 2])).tolist() == [[0, 1], [6, 7], [8, 9]]
