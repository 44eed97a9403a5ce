"""What a recipe may say: the closed list of its keys and their defaults."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from miniverl.recipe.load import recipe_from
from miniverl.recipe.schema import known_keys

SMALLEST = {
    "name": "smallest",
    "objective": "gkd",
    "models": {"student": {"id": "s"}, "teacher": {"id": "t"}},
    "data": {"train_files": "a.parquet"},
    "trainer": {"total_training_steps": 1},
}


def test_a_recipe_needs_models_data_an_objective_and_a_length_and_nothing_else():
    recipe = recipe_from(SMALLEST, source="test")
    assert recipe.data.train_files == ("a.parquet",)
    assert (recipe.models.student.lora.r, recipe.models.student.lora.lora_alpha) == (32, 32)
    assert (recipe.distillation.divergence, recipe.distillation.topk) == ("reverse_kl", 64)
    assert (recipe.rollout.temperature, recipe.rollout.top_p, recipe.rollout.top_k) == (1.0, 1.0, 0)
    assert (recipe.optim.betas, recipe.optim.clip_grad, recipe.optim.weight_decay) == ((0.9, 0.999), 1.0, 0.0)
    assert (recipe.trainer.save_freq, recipe.trainer.test_freq, recipe.trainer.val_before_train) == (20, 10, True)


def test_a_recipe_never_changes():
    recipe = recipe_from(SMALLEST, source="test")
    with pytest.raises(ValidationError):
        recipe.rollout.temperature = 0.5


def test_minus_one_switches_top_k_off():
    assert recipe_from({**SMALLEST, "rollout": {"top_k": -1}}, source="test").rollout.top_k == 0


def test_lists_become_tuples_so_that_a_recipe_can_be_hashed():
    recipe = recipe_from({**SMALLEST, "data": {"train_files": ["a", "b"]}}, source="test")
    assert recipe.data.train_files == ("a", "b")
    assert hash(recipe) == hash(recipe.model_copy())


def test_every_key_has_a_dotted_name():
    keys = list(known_keys())
    assert len(keys) == len(set(keys))
    for key in ("models.student.lora.target_modules", "rollout.max_padded_tokens", "placement.teacher.gpu", "name"):
        assert key in keys


def test_no_key_is_called_beta():
    assert not [key for key in known_keys() if key.rsplit(".", 1)[-1] == "beta"]


def test_the_public_keys_are_these():
    """A new key is a deliberate change: write it into the golden list, and into the documents."""
    golden = Path(__file__).parents[1] / "golden" / "recipe_keys.txt"
    assert list(known_keys()) == golden.read_text(encoding="utf-8").split()
