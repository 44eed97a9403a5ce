"""This file holds the exact-answer verifier."""

from __future__ import annotations


def exact_answer(text: str, ground_truth: str) -> bool:
    """Whether the response is the answer and nothing else, white space around it apart.

    >>> exact_answer(" 357", "357"), exact_answer("357.", "357")
    (True, False)
    """
    return text.strip() == ground_truth.strip()
