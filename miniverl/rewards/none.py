"""This file holds NoRewards: the reward role of objectives that need no reward."""

from __future__ import annotations

from miniverl.contract.group import Group


class NoRewards:
    """Distillation learns from the teacher alone; groups pass as they are."""

    def score(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        return groups
