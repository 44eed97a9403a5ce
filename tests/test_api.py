"""This file holds the Python interface: it says what the command line says."""

import json

import pytest

import miniverl
from miniverl import api
from miniverl.errors import ConfigError, RecordError


def test_a_plan_takes_overrides_as_words_or_as_a_mapping():
    words = api.plan("quickstart", ["trainer.total_training_steps=7"])
    mapping = api.plan("quickstart", {"trainer.total_training_steps": 7})
    assert words.schedule.total_training_steps == 7
    assert (words.experiment, words.execution) == (mapping.experiment, mapping.execution)


def test_a_recipe_of_ones_own_is_a_path(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("objective: gdk\n")
    with pytest.raises(ConfigError, match="gkd"):
        api.plan(recipe)


def test_inspecting_nothing_is_told(tmp_path):
    with pytest.raises(RecordError):
        api.inspect(tmp_path / "nowhere")


def test_the_package_offers_run_and_inspect_and_complains_about_the_rest():
    assert (miniverl.run, miniverl.inspect) == (api.run, api.inspect)
    with pytest.raises(AttributeError, match="trian"):
        miniverl.trian  # noqa: B018


@pytest.mark.slow
def test_a_run_from_python_prints_progress_and_ends_with_the_figures_of_inspect(tmp_path, capsys):
    run_dir = tmp_path / "run"
    small = {"run.dir": str(run_dir), "trainer.total_training_steps": 1, "trainer.val_prompts": 4}
    figures = miniverl.run("quickstart", {**small, "data.train_batch_size": 2})
    assert figures["steps"] == {"done": 1, "total": 1}
    assert figures == json.loads(json.dumps(api.inspect(run_dir)))
    assert "trainer" in capsys.readouterr().out
