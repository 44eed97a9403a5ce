"""This file holds canonical bytes: the one JSON and the one array encoding that digests are taken over."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def canonical_json(value: Any) -> bytes:
    """Sorted keys, no spaces, UTF-8, no NaN. Dataclasses become objects; arrays are refused on purpose."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain
    ).encode()


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no canonical JSON")


def json_digest(value: Any) -> str:
    """SHA-256 of the canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def little_endian(array: np.ndarray) -> bytes:
    """The array's entries in C order, little-endian, whatever the machine."""
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


def tensors_digest(tensors: Mapping[str, np.ndarray] | Iterable[tuple[str, np.ndarray]]) -> str:
    """SHA-256 over (name, dtype, shape, bytes) of named arrays in order of name.

    Pairs must come in that order; each array is let go before the next is asked for.
    """
    pairs = sorted(tensors.items()) if isinstance(tensors, Mapping) else tensors
    digest, before = hashlib.sha256(), ""
    for name, array in pairs:
        assert before <= name, f"{name} after {before}: not in order of name"
        before = name
        digest.update(f"{name}\x00{array.dtype.str.lstrip('<>|=')}\x00{array.shape}\x00".encode())
        digest.update(little_endian(array))
    return digest.hexdigest()
