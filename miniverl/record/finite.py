"""This file holds the JSON form of numbers that JSON has no form for: their names."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:
    """The same JSON value, with "inf", "-inf" and "nan" for the numbers in it that are not finite."""
    if isinstance(value, dict):
        return {name: finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
