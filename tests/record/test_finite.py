"""This file holds the behaviour of numbers JSON cannot hold: they become their names, wherever they stand."""

import math

from miniverl.record.finite import finite


def test_only_numbers_that_are_not_finite_become_names():
    found = {"a": [1.5, math.nan, {"b": -math.inf}], "c": (math.inf, 2), "d": "nan", "e": None, "f": True}
    assert finite(found) == {"a": [1.5, "nan", {"b": "-inf"}], "c": ["inf", 2], "d": "nan", "e": None, "f": True}
