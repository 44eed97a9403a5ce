"""This file holds the check of weight files: each is as long as its own header says. No weight is read."""

from __future__ import annotations

import json
from pathlib import Path

from miniverl.errors import ModelError

LENGTH = 8
"""Bytes of the header's own length, little-endian, with which a safetensors file begins."""

LONGEST = 100_000_000
"""Bytes a header may have; the safetensors library refuses longer ones too."""


def refuse_damaged(path: Path, *, field: str) -> None:
    """Raises ModelError, naming the recipe key ``field``, for a safetensors file that is cut off or no such file."""
    try:
        problem = _problem(path)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        problem = f"has no header that can be read ({error})"
    if problem is not None:
        raise ModelError(field, value=str(path), problem=problem, fix="fetch the file again")


def _problem(path: Path) -> str | None:
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(LENGTH), "little")
        if not 0 < length <= min(size - LENGTH, LONGEST):
            return f"is no whole safetensors file: {size} bytes, and a header of {length}"
        header = json.loads(stream.read(length))
    ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"]
    needed = LENGTH + length + max(ends, default=0)
    return None if size == needed else f"has {size} bytes; its header describes {needed}"
