"""Each rule between keys refuses what it is named after, and only that."""

from __future__ import annotations

import pytest

from miniverl.errors import ConfigError
from miniverl.recipe import rules
from miniverl.recipe.load import recipe_from
from miniverl.recipe.overrides import put
from tests.recipe.test_schema import SMALLEST

BROKEN = {
    "vllm_takes_adapters_alone": (
        {"rollout.backend": "vllm", "models.student.lora": None},
        "rollout.backend",
        "hf_cached",
    ),
    "vllm_has_a_largest_rank": (
        {"rollout.backend": "vllm", "models.student.lora.r": 513},
        "models.student.lora.r",
        "512 or less",
    ),
    "vllm_is_not_deterministic": (
        {"rollout.backend": "vllm", "rollout.deterministic": True},
        "rollout.deterministic",
        "write auto",
    ),
    "hf_cached_alone_is_compiled": (
        {"rollout.compile_backend": True, "rollout.backend": "hf_reference"},
        "rollout.compile_backend",
        "hf_cached",
    ),
    "phases_are_not_built": ({"placement.mode": "phases"}, "placement.mode", "write shared"),
    "the_run_has_one_length": ({"trainer.total_epochs": 1}, "trainer.total_training_steps", "exactly one"),
    "one_sequence_fits_the_cache": (
        {"rollout.max_padded_tokens": 23, "data.max_prompt_length": 16, "rollout.max_new_tokens": 8},
        "rollout.max_padded_tokens",
        "at least 24",
    ),
    "sampled_k1_needs_chance": (
        {"objective": "sampled_k1", "rollout.temperature": 0, "rollout.samples_per_prompt": 1},
        "rollout.temperature",
        "objective: gkd",
    ),
    "greedy_samples_are_all_one": (
        {"rollout.temperature": 0, "rollout.samples_per_prompt": 2},
        "rollout.samples_per_prompt",
        "write 1",
    ),
    "importance_weights_belong_to_sampled_k1": (
        {"distillation.rollout_is": "token"},
        "distillation.rollout_is",
        "write null",
    ),
    "importance_weights_need_recorded_logprobs": (
        {"objective": "sampled_k1", "rollout.record_logprobs": False},
        "rollout.record_logprobs",
        "write true",
    ),
    "four_bits_are_not_trained_directly": (
        {"models.student.lora": None, "models.student.quantization": "nf4"},
        "models.student.quantization",
        "lora block",
    ),
    "equal_bits_need_one_thread": (
        {"rollout.deterministic": True, "placement.rollout.threads": 2},
        "rollout.deterministic",
        "threads: 1",
    ),
    "warmup_ends_within_the_schedule": ({"optim.lr_warmup_steps": 2}, "optim.lr_warmup_steps", "at most 1"),
    "target_modules_are_a_pattern": (
        {"models.student.lora": {"target_modules": "("}},
        "models.student.lora.target_modules",
        "all-linear",
    ),
}
"""Rule -> keys that break it, the field it names, a part of its fix."""


def changed(keys):
    tree = SMALLEST
    for key, value in keys.items():
        tree = put(tree, key, value)
    return tree


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_refuses_what_it_is_named_after(name):
    keys, field, fix = BROKEN[name]
    with pytest.raises(ConfigError) as caught:
        recipe_from(changed(keys), source="test")
    assert caught.value.field == field
    assert fix in caught.value.fix


@pytest.mark.parametrize("name", BROKEN)
def test_only_that_rule_speaks(name, monkeypatch):
    """With the rule taken out of the list, the same recipe passes: no other rule repeats it."""
    monkeypatch.setattr("miniverl.recipe.load.RULES", tuple(rule for rule in rules.RULES if rule.__name__ != name))
    recipe_from(changed(BROKEN[name][0]), source="test")


def test_every_rule_has_its_case():
    assert [rule.__name__ for rule in rules.RULES] == list(BROKEN)


def test_the_refusal_of_a_small_cache_shows_the_sum():
    with pytest.raises(ConfigError, match=r"24 tokens \(data.max_prompt_length 16 \+ rollout.max_new_tokens 8\)"):
        recipe_from(changed(BROKEN["one_sequence_fits_the_cache"][0]), source="test")


def test_a_run_without_a_length_is_refused():
    with pytest.raises(ConfigError, match="written nowhere"):
        recipe_from({**SMALLEST, "trainer": {}}, source="test")


def test_several_broken_rules_come_in_one_message():
    with pytest.raises(ConfigError, match="2 keys are wrong"):
        recipe_from(
            changed({"rollout.temperature": 0, "rollout.samples_per_prompt": 2, "placement.mode": "phases"}),
            source="test",
        )
