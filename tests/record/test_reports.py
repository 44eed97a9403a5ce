"""This file holds the behaviour of report texts: equal reports give equal texts, and every number comes back."""

import math

from miniverl.record.reports import from_text, to_text
from tests.record.drawn import report


def test_a_report_comes_back_with_its_order_forgotten():
    first = report(3, metrics={"a": 1.5, "b": 0.1})
    assert from_text(to_text(first)) == first
    assert to_text(first) == to_text(report(3, metrics={"b": 0.1, "a": 1.5}))


def test_numbers_that_json_does_not_know_come_back():
    found = from_text(to_text(report(1, metrics={"a": math.nan, "b": -math.inf}))).metrics
    assert math.isnan(found["a"]) and found["b"] == -math.inf
