"""Distillation scores nothing: what comes in goes out, unscored and untouched."""

from __future__ import annotations

from miniverl.rewards.none import NoRewards
from tests.contract.drawn import of_shape


def test_groups_pass_as_they_are():
    groups = tuple(of_shape(cursor, prompt_tokens=2, lengths=(1, 2)) for cursor in range(3))
    assert NoRewards().score(groups) is groups
    assert all(group.rewards is None for group in groups)


def test_no_groups_are_no_groups():
    assert NoRewards().score(()) == ()
