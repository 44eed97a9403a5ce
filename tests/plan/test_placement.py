"""Shares of roles, against what a machine or a cluster has."""

from __future__ import annotations

import pytest

from miniverl.errors import PlacementError
from miniverl.plan.placement import ROLES, refuse_unless_it_fits, shares
from miniverl.plan.plan import DeviceShare
from miniverl.recipe.schema import Placement


def on_gpus(**fractions: float) -> dict[str, DeviceShare]:
    return {role: DeviceShare(gpu=gpu, cpu=0.0, threads=1) for role, gpu in fractions.items()}


def test_by_default_every_role_fits_on_two_cpus_without_a_gpu():
    placement = shares(Placement())
    assert tuple(placement) == ROLES
    assert all(placement[role].cpu <= 0.4 for role in ROLES)
    refuse_unless_it_fits(placement, {"CPU": 2.0})


def test_too_few_cpus_are_refused_with_every_number():
    with pytest.raises(PlacementError) as caught:
        refuse_unless_it_fits(shares(Placement()), {"CPU": 1.0})
    text = str(caught.value)
    assert "trainer 0.4, rollout 0.4, teacher 0.4, journal 0.1" in text
    assert "placement.*.cpu = 1.4" in text
    assert "there are 1 CPUs" in text


def test_a_card_is_filled_exactly():
    refuse_unless_it_fits(on_gpus(trainer=0.4, rollout=0.35, teacher=0.25), {"CPU": 1, "GPU": 1})


def test_more_than_a_card_is_refused_with_every_number():
    with pytest.raises(PlacementError) as caught:
        refuse_unless_it_fits(on_gpus(trainer=0.5, rollout=0.35, teacher=0.25), {"CPU": 1, "GPU": 1})
    assert "placement.*.gpu = 1.1" in str(caught.value)
    assert "trainer 0.5, rollout 0.35, teacher 0.25; there are 1 GPU" in str(caught.value)


def test_a_gpu_where_there_is_none_is_refused_with_the_way_out():
    with pytest.raises(PlacementError, match="gpu: 0 to run on the CPU"):
        refuse_unless_it_fits(on_gpus(trainer=0.5), {"CPU": 1})


def test_fractions_must_fit_card_by_card():
    three = on_gpus(trainer=0.6, rollout=0.6, teacher=0.6)
    with pytest.raises(PlacementError, match="one card sum to at most 1"):
        refuse_unless_it_fits(three, {"CPU": 1, "GPU": 2})
    refuse_unless_it_fits(three, {"CPU": 1, "GPU": 3})


def test_a_packing_that_greed_would_miss_is_found():
    refuse_unless_it_fits(on_gpus(a=0.4, b=0.4, c=0.3, d=0.3, e=0.3, f=0.3), {"CPU": 1, "GPU": 2})
