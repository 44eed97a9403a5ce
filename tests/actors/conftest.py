"""This file holds the plan that tests of the actors share: the quickstart, shrunk."""

from dataclasses import replace

import pytest

from miniverl.plan.compile import compile_plan
from miniverl.plan.plan import DeviceShare, Plan
from miniverl.recipe.load import load_recipe
from tests.small_run import SMALL


@pytest.fixture
def plan(tmp_path) -> Plan:
    return compile_plan(load_recipe("quickstart", SMALL), run_dir=str(tmp_path / "run"))


@pytest.fixture
def with_gpu(plan) -> Plan:
    """The same, its trainer on half a card with two threads."""
    share = DeviceShare(gpu=0.5, cpu=1.0, threads=2)
    return replace(plan, placement={**plan.placement, "trainer": share})
