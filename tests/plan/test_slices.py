"""Blocks of a recipe turned into slices."""

from __future__ import annotations

import pytest

from miniverl.errors import ConfigError
from miniverl.plan import slices
from miniverl.recipe.load import recipe_from
from miniverl.recipe.overrides import put
from tests.recipe.test_schema import SMALLEST


def recipe(**changes):
    tree = SMALLEST
    for key, value in changes.items():
        tree = put(tree, key.replace("__", "."), value)
    return recipe_from(tree, source="test")


def objective(vocabulary, **changes):
    made = recipe(**changes)
    return slices.objective(made, vocabulary=vocabulary, sampling=slices.sampling(made, stop_token_ids=(1,)))


@pytest.mark.parametrize(
    ("topk", "vocabulary", "planned"),
    [(64, 100, 64), (64, 64, None), (64, 12, None), (None, 4096, None), (64, 5000, 64)],
)
def test_top_k_covers_the_vocabulary_or_is_kept(topk, vocabulary, planned):
    assert objective(vocabulary, distillation__topk=topk).topk == planned


@pytest.mark.parametrize("topk", [None, 4097])
def test_the_exact_distribution_of_a_large_vocabulary_is_refused(topk):
    with pytest.raises(ConfigError, match=r"over 4097 ids.*up to 4096 ids; write 64"):
        objective(4097, distillation__topk=topk)


def test_sampled_k1_never_asks_for_distributions():
    assert objective(150_000, objective="sampled_k1", distillation__topk=None).topk is None


def test_everybody_scores_at_the_temperature_of_the_rollout_unless_another_is_written():
    assert objective(9, rollout__temperature=0.7).temperature == 0.7
    assert objective(9, rollout__temperature=0.7, distillation__temperature=2.0).temperature == 2.0
    assert objective(9, rollout__temperature=0).temperature == 1.0


@pytest.mark.parametrize(
    ("cap", "prompts", "tokens", "slots"),
    [(None, 4, 16384, 8), (2, 4, 16384, 4), (None, 4, 50, 3), (None, 4, 16, 1)],
)
def test_slots_are_what_rows_and_cache_allow(cap, prompts, tokens, slots):
    made = recipe(
        data__max_prompt_length=8,
        data__train_batch_size=prompts,
        rollout__max_new_tokens=8,
        rollout__samples_per_prompt=2,
        rollout__prompt_batch_size=cap,
        rollout__max_padded_tokens=tokens,
    )
    assert slices.slots(made) == slots


@pytest.mark.parametrize(
    ("trainer", "rollout", "dtype"),
    [(0, 0, "float32"), (0.4, 0.4, "bfloat16"), (0.4, 0, "float32"), (0, 0.4, "float32")],
)
def test_auto_is_one_dtype_for_trainer_and_rollout(trainer, rollout, dtype):
    made = recipe(placement__trainer__gpu=trainer, placement__rollout__gpu=rollout)
    assert slices.student_dtype(made, {"trainer": made.placement.trainer, "rollout": made.placement.rollout}) == dtype


def test_a_written_dtype_is_taken():
    made = recipe(models__student__dtype="bfloat16")
    assert (
        slices.student_dtype(made, {"trainer": made.placement.trainer, "rollout": made.placement.rollout}) == "bfloat16"
    )


@pytest.mark.parametrize(
    ("asked", "gpu", "planned"), [("auto", 0, True), ("auto", 0.3, False), (True, 0.3, True), (False, 0, False)]
)
def test_bits_are_held_without_a_gpu_unless_asked_otherwise(asked, gpu, planned):
    made = recipe(rollout__deterministic=asked, placement__rollout__gpu=gpu)
    assert slices.deterministic(made, made.placement.rollout) is planned


def test_the_order_has_the_seed_of_the_run_unless_it_has_its_own():
    assert slices.order(recipe(run__seed=7)).seed == 7
    assert slices.order(recipe(run__seed=7, data__seed=0)).seed == 0


@pytest.mark.parametrize(("epochs", "prompts", "steps"), [(1, 100, 3), (2, 100, 6), (3, 33, 3)])
def test_epochs_are_counted_in_full_batches(epochs, prompts, steps):
    made = recipe(trainer={"total_training_steps": None, "total_epochs": epochs}, data__train_batch_size=32)
    assert slices.schedule(made, prompts=prompts).total_training_steps == steps


def test_epochs_that_fill_no_batch_are_refused():
    made = recipe(trainer={"total_training_steps": None, "total_epochs": 1}, data__train_batch_size=32)
    with pytest.raises(ConfigError, match="10 prompts in 1 epochs do not fill one step of 32; write 4 or more"):
        slices.schedule(made, prompts=10)


def test_the_schedule_is_as_long_as_the_run_unless_written():
    assert slices.optim(recipe(), total_training_steps=9).schedule_steps == 9
    assert slices.optim(recipe(optim__schedule_steps=50), total_training_steps=9).schedule_steps == 50


def test_jsonl_is_always_written():
    assert slices.tracking(recipe(tracking__sinks=["console"])).sinks == ("console", "jsonl")
    assert slices.tracking(recipe(tracking__sinks=["jsonl", "wandb"])).sinks == ("jsonl", "wandb")
