"""This file holds the placement: the share of each role, and whether all of them fit on what there is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from miniverl.errors import PlacementError
from miniverl.plan.plan import DeviceShare
from miniverl.recipe.schema import Placement, Share

ROLES = ("controller", "trainer", "rollout", "teacher", "journal")

GRAIN = 10_000
"""Ray counts resources in ten-thousandths; comparing in them keeps 0.4 + 0.35 + 0.25 at exactly one card."""


def shares(placement: Placement) -> dict[str, DeviceShare]:
    """By role, in the order of ROLES."""
    return {role: _share(getattr(placement, role)) for role in ROLES}


def local_cpus() -> int:
    """CPUs of a Ray that is started on this machine for one run; Ray is given two even where there is one."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(2, usable or 2)


def refuse_unless_it_fits(placement: Mapping[str, DeviceShare], resources: Mapping[str, float]) -> None:
    """Raises PlacementError, with every role's number, when ``resources`` (Ray's CPU and GPU) cannot hold all roles.

    A fraction of a GPU lies on one card, so shares must fit card by card, not only in sum.
    """
    cpus = {role: share.cpu for role, share in placement.items()}
    have = resources.get("CPU", 0.0)
    if _grains(cpus.values()) > round(have * GRAIN):
        raise _refusal("cpu", cpus, f"{have:g} CPUs", f"lower placement.<role>.cpu to a sum of {have:g}")
    gpus = {role: share.gpu for role, share in placement.items() if share.gpu}
    cards = int(resources.get("GPU", 0.0))
    if gpus and not _packs([round(gpu * GRAIN) for gpu in sorted(gpus.values(), reverse=True)], [GRAIN] * cards):
        found = f"{cards} GPU{'' if cards == 1 else 's'}"
        fix = f"lower placement.<role>.gpu so that the roles of one card sum to at most 1 ({found})"
        raise _refusal("gpu", gpus, found, fix if cards else "write placement.<role>.gpu: 0 to run on the CPU")


def _share(share: Share) -> DeviceShare:
    return DeviceShare(gpu=share.gpu, cpu=share.cpu, threads=share.threads)


def _grains(amounts: Iterable[float]) -> int:
    return sum(round(amount * GRAIN) for amount in amounts)


def _packs(shares_left: Sequence[int], room: Sequence[int]) -> bool:
    """Whether the shares can be dealt to cards with this much room left; exact, for there are few of both."""
    if not shares_left:
        return True
    first, rest = shares_left[0], shares_left[1:]
    tried: set[int] = set()
    for card, free in enumerate(room):
        if first <= free and free not in tried:  # cards with equal room are alike
            tried.add(free)
            if _packs(rest, [*room[:card], free - first, *room[card + 1 :]]):
                return True
    return False


def _refusal(kind: str, amounts: Mapping[str, float], have: str, fix: str) -> PlacementError:
    each = ", ".join(f"{role} {amount:g}" for role, amount in amounts.items())
    total = _grains(amounts.values()) / GRAIN
    return PlacementError(
        f"placement.*.{kind}", value=total, problem=f"the roles ask for {each}; there are {have}", fix=fix
    )
