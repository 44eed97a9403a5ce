"""This file holds the making of read-only arrays, the only kind that contract types keep."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


def frozen(values: ArrayLike, dtype: DTypeLike) -> np.ndarray:
    """A read-only, contiguous array of the given type; copies only when it must."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def valid(rows: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The entries of ``rows`` [n, T, ...] below each row's length, row after row: [sum(lengths), ...]."""
    return rows[np.arange(rows.shape[1])[None, :] < lengths[:, None]]
