"""The nearest right key, by the names other trainers use and by spelling."""

from __future__ import annotations

import pytest

from miniverl.recipe.nearest import ANSWERS, SYNONYMS, fix_for
from miniverl.recipe.schema import known_keys

KNOWN = tuple(known_keys())


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("rollout.num_generations", "rollout.samples_per_prompt"),
        ("actor_rollout_ref.rollout.n", "rollout.samples_per_prompt"),
        ("group_size", "rollout.samples_per_prompt"),
        ("max_completion_length", "rollout.max_new_tokens"),
        ("data.max_response_length", "rollout.max_new_tokens"),
        ("max_tokens", "rollout.max_new_tokens"),
        ("learning_rate", "optim.lr"),
        ("models.student.load_in_4bit", "models.student.quantization: nf4"),
        ("trainer.logger", "tracking.sinks"),
        ("report_to", "tracking.sinks"),
        ("output_dir", "run.dir"),
        ("batch_size", "data.train_batch_size"),
        ("distillation.beta", "distillation.jsd_beta"),
        ("actor_rollout_ref.rollout.gpu_memory_utilization", "placement.rollout.gpu"),
        ("algorithm.adv_estimator", "objective"),
    ],
)
def test_names_of_other_trainers_are_understood(key, words):
    assert words in fix_for(key, KNOWN)


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("rollout.temprature", "rollout.temperature"),
        ("data.train_file", "data.train_files"),
        ("rolout", "rollout"),
        ("rolout.max_new_tokens", "rollout.max_new_tokens"),
        ("trainer.lr", "optim.lr"),
        ("models.student.lora_alpha", "models.student.lora.lora_alpha"),
        ("models.techer.dtype", "models.teacher.dtype"),
        ("actor_rollout_ref.actor.optim.lr", "optim.lr"),
        ("trainer.training_steps", "trainer.total_training_steps"),
    ],
)
def test_misspelt_and_misplaced_keys_are_recognised(key, nearest):
    assert nearest in fix_for(key, KNOWN)


def test_beta_is_refused_with_the_reason():
    assert "KL penalty" in fix_for("beta", KNOWN)


def test_a_dotted_key_in_a_file_is_told_to_become_blocks():
    assert fix_for("rollout.top_p", KNOWN) == "write it as blocks, rollout: {top_p: ...}"


def test_a_key_like_no_other_is_told_what_there_is():
    assert "has the keys dir, seed, resume" in fix_for("run.zzzzz", KNOWN)
    assert "leave it out" in fix_for("xq.zzzzz", KNOWN)


def test_every_answer_leads_to_a_key_that_exists():
    assert set(SYNONYMS.values()) <= set(KNOWN)
    for name in (*SYNONYMS, *ANSWERS):
        assert not [key for key in KNOWN if key == name and name not in ("optim",)], name
