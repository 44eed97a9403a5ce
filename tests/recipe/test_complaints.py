"""Complaints about a recipe: the key, the value, what is wrong with it and what to write."""

from __future__ import annotations

import pytest

from miniverl.errors import ConfigError
from miniverl.recipe.load import recipe_from
from tests.recipe.test_schema import SMALLEST


def refusal(**blocks) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        recipe_from({**SMALLEST, **blocks}, source="test.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("blocks", "field", "problem", "fix"),
    [
        ({"rollout": {"samples_per_prompt": 0}}, "rollout.samples_per_prompt", "is below 1", "write 1 or more"),
        ({"rollout": {"samples_per_prompt": True}}, "rollout.samples_per_prompt", "whole number", "whole number"),
        ({"rollout": {"top_p": 1.5}}, "rollout.top_p", "is above 1", "write 1 or less"),
        ({"rollout": {"top_p": 0}}, "rollout.top_p", "is not above 0", "above 0"),
        ({"rollout": {"temperature": "1.0"}}, "rollout.temperature", "is not a number", "without quotes: 1.0"),
        ({"tracking": {"sinks": "jsonl"}}, "tracking.sinks", "is not a list", "write a list"),
        ({"rollout": {"stop": [1]}}, "rollout.stop[0]", "is not text", "write text"),
        ({"rollout": 3}, "rollout", "is not a block", "beneath it"),
        ({"rollout": {"backend": "hf_cache"}}, "rollout.backend", "hf_cached", "did you mean hf_cached?"),
        ({"rollout": {"deterministic": "maybe"}}, "rollout.deterministic", "auto, true, false", "one of them"),
        ({"rollout": {"synchronization": "lazy"}}, "rollout.synchronization", "is not strict", "write strict"),
        ({"objective": "GKD"}, "objective", "gkd, sampled_k1", "did you mean gkd?"),
        ({"data": {"train_files": []}}, "data.train_files", "is empty", "at least 1"),
        ({"data": {"train_files": "a", "shuffle": "yes"}}, "data.shuffle", "neither true nor false", "true or false"),
        ({"data": {"train_files": "a", "max_prompt_length": 1.5}}, "data.max_prompt_length", "whole", "whole"),
        ({"optim": {"betas": [0.9, 1.0]}}, "optim.betas[1]", "is not below 1", "below 1"),
        ({"optim": {"betas": [0.9]}}, "optim.betas[1]", "is missing", "write it"),
        ({"optim": {"lr": float("nan")}}, "optim.lr", "is not", "number"),
        ({"optim": {"eps": float("inf")}}, "optim.eps", "is not finite", "finite"),
        ({"run": {"seed": -1}}, "run.seed", "is below 0", "0 or more"),
        ({"placement": {"trainer": {"gpu": 1.5}}}, "placement.trainer.gpu", "is above 1", "1 or less"),
        ({"tracking": {"sinks": ["wandbb"]}}, "tracking.sinks[0]", "console", "did you mean wandb?"),
        ({"distillation": {"jsd_beta": 1}}, "distillation.jsd_beta", "is not below 1", "below 1"),
    ],
)
def test_a_wrong_value_is_named_with_its_key_and_what_to_write(blocks, field, problem, fix):
    error = refusal(**blocks)
    assert error.field == field
    assert problem in error.problem
    assert fix in error.fix
    assert "pydantic" not in str(error)


def test_the_value_is_quoted():
    assert "rollout.samples_per_prompt = 0: " in str(refusal(rollout={"samples_per_prompt": 0}))


def test_an_unknown_key_is_named_in_full():
    error = refusal(models={"student": {"id": "s", "lora": {"rank": 8}}, "teacher": {"id": "t"}})
    assert (error.field, error.value) == ("models.student.lora.rank", "8")
    assert "models.student.lora.r" in error.fix


def test_a_missing_key_is_named_in_full_and_explained():
    error = refusal(models={"student": {"id": "s"}})
    assert error.field == "models.teacher.id"
    assert "tokenizer" in error.fix
    assert refusal(data={}).field == "data.train_files"


def test_all_complaints_come_in_one_message():
    error = refusal(rollout={"samples_per_prompt": 0, "temprature": 1}, beta=0.5)
    assert error.field == "test.yaml"
    assert "3 keys are wrong" in error.problem
    for key in ("rollout.samples_per_prompt = 0", "rollout.temprature = 1", "beta = 0.5"):
        assert key in str(error)


def test_a_list_that_no_longer_helps_is_cut():
    error = refusal(**{f"zzz{number}": 1 for number in range(40)})
    assert "and 28 more" in error.fix


def test_a_block_from_another_trainer_is_answered_key_by_key():
    error = refusal(actor_rollout_ref={"rollout": {"n": 5}, "actor": {"optim": {"lr": 1e-6}}})
    assert "actor_rollout_ref.rollout.n = 5: no such key; write rollout.samples_per_prompt" in str(error)
    assert "actor_rollout_ref.actor.optim.lr = 1e-06: no such key; did you mean optim.lr?" in str(error)


def test_a_misspelt_block_is_one_complaint():
    assert refusal(rolout={"temperature": 1.0, "top_p": 1.0}).fix == "did you mean rollout?"
