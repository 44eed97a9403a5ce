"""Defaults that depend on other keys."""

from __future__ import annotations

from miniverl.recipe.defaults import with_defaults


def test_lora_learns_at_ten_times_the_rate_of_full_weights():
    assert with_defaults({"models": {"student": {"id": "s"}}})["optim"]["lr"] == 1e-4
    assert with_defaults({"models": {"student": {"lora": {"r": 4}}}})["optim"]["lr"] == 1e-4
    assert with_defaults({"models": {"student": {"lora": None}}})["optim"]["lr"] == 1e-5


def test_sampled_k1_draws_more_samples_and_weighs_them():
    filled = with_defaults({"objective": "sampled_k1"})
    assert filled["rollout"]["samples_per_prompt"] == 4
    assert filled["distillation"]["rollout_is"] == "token"


def test_what_is_written_wins_even_when_it_is_null():
    filled = with_defaults(
        {"objective": "sampled_k1", "distillation": {"rollout_is": None}, "optim": {"lr": 3e-4, "eps": 1e-6}}
    )
    assert filled["distillation"] == {"rollout_is": None}
    assert filled["optim"] == {"lr": 3e-4, "eps": 1e-6}


def test_the_tree_of_the_user_is_left_alone():
    tree = {"objective": "sampled_k1", "rollout": {}}
    with_defaults(tree)
    assert tree == {"objective": "sampled_k1", "rollout": {}}


def test_a_block_of_a_wrong_type_is_left_for_the_schema_to_refuse():
    assert with_defaults({"objective": ["gkd"], "optim": 3, "models": None})["optim"] == 3
