"""Every recipe in configs/ loads, and plans on a machine without a GPU and without a hub."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from miniverl.plan.compile import compile_plan
from miniverl.plan.placement import refuse_unless_it_fits
from miniverl.recipe.load import load_recipe

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_plans_and_fits_on_two_cpus(path, tmp_path):
    plan = compile_plan(load_recipe(str(path)), run_dir=str(tmp_path))
    assert plan.name == path.stem
    refuse_unless_it_fits(plan.placement, {"CPU": 2.0})


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_is_read_the_same_by_plain_yaml(path):
    """Nothing in it depends on how our loader differs from others."""
    tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    recipe = load_recipe(str(path))
    assert isinstance(tree["optim"]["lr"], float)
    assert recipe.optim.lr == tree["optim"]["lr"]


def test_the_quickstart_decodes_its_whole_step_at_once(tmp_path):
    plan = compile_plan(load_recipe("quickstart"), run_dir=str(tmp_path))
    assert plan.rollout.slots == plan.order.train_batch_size * plan.samples_per_prompt
    assert plan.trainer.objective.topk is None
    assert plan.evaluation_prompts == 512


def test_the_two_quickstarts_differ_in_their_objective(tmp_path):
    gkd, k1 = (compile_plan(load_recipe(name), run_dir=str(tmp_path)) for name in ("quickstart", "quickstart-k1"))
    assert (gkd.trainer.objective.name, k1.trainer.objective.name) == ("gkd", "sampled_k1")
    assert gkd.train_data.digest == k1.train_data.digest
