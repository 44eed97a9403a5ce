"""This file holds the slices: blocks of a recipe turned into what one part of a run needs to know."""

from __future__ import annotations

import math
from collections.abc import Mapping

from miniverl.contract.request import Sampling
from miniverl.errors import ConfigError
from miniverl.plan.facts import installed
from miniverl.plan.plan import (
    DeviceShare,
    LoraPlan,
    ObjectivePlan,
    OptimPlan,
    OrderPlan,
    SchedulePlan,
    TrackingPlan,
    VllmPlan,
)
from miniverl.recipe.schema import Recipe

EXACT_LIMIT = 4096
"""Ids up to which a whole distribution per token may travel from teacher to trainer."""


def sampling(recipe: Recipe, *, stop_token_ids: tuple[int, ...]) -> Sampling:
    """Of training rollouts; what a model's generation_config.json says about temperature and such is not asked."""
    rollout = recipe.rollout
    return Sampling(
        temperature=rollout.temperature,
        top_p=rollout.top_p,
        top_k=rollout.top_k,
        max_new_tokens=rollout.max_new_tokens,
        stop_token_ids=stop_token_ids,
        stop=rollout.stop,
        logprobs=rollout.record_logprobs,
    )


def objective(recipe: Recipe, *, vocabulary: int, sampling: Sampling) -> ObjectivePlan:
    distillation = recipe.distillation
    return ObjectivePlan(
        name=recipe.objective,
        divergence=distillation.divergence,
        jsd_beta=distillation.jsd_beta,
        topk=_topk(recipe, vocabulary) if recipe.objective == "gkd" else None,
        temperature=distillation.temperature or sampling.scoring_temperature,
        loss_agg_mode=distillation.loss_agg_mode,
        horizon=sampling.max_new_tokens,
        rollout_is=distillation.rollout_is,
        rollout_is_threshold=distillation.rollout_is_threshold,
    )


def _topk(recipe: Recipe, vocabulary: int) -> int | None:
    """None, the exact distribution, where k covers the vocabulary anyway."""
    topk = recipe.distillation.topk
    if topk is not None and topk < vocabulary:
        return topk
    if vocabulary > EXACT_LIMIT:
        raise ConfigError(
            "distillation.topk",
            value=topk,
            problem=f"asks for the exact distribution over {vocabulary} ids at every token; that is sent only up to "
            f"{EXACT_LIMIT} ids",
            fix="write 64: the 64 likeliest ids and the rest as one bucket",
        )
    return None


def lora(recipe: Recipe) -> LoraPlan | None:
    block = recipe.models.student.lora
    return None if block is None else LoraPlan(**block.model_dump())


def student_dtype(recipe: Recipe, placement: Mapping[str, DeviceShare]) -> str:
    """One dtype for trainer and rollout: they must compute one policy."""
    share = min(placement["trainer"], placement["rollout"], key=lambda one: one.gpu)
    return dtype(recipe.models.student.dtype, share)


def dtype(asked: str, share: DeviceShare) -> str:
    """``auto``: bfloat16 products are several times slower than float32 ones on most CPUs."""
    if asked != "auto":
        return asked
    return "bfloat16" if share.gpu > 0 else "float32"


def slots(recipe: Recipe) -> int:
    """Rows decoded at once; at least one, by the rule that a sequence fits the cache."""
    rollout = recipe.rollout
    rows = (rollout.prompt_batch_size or recipe.data.train_batch_size) * rollout.samples_per_prompt
    return min(rows, rollout.max_padded_tokens // max_length(recipe))


def max_length(recipe: Recipe) -> int:
    """Tokens of the longest possible sequence."""
    return recipe.data.max_prompt_length + recipe.rollout.max_new_tokens


def deterministic(recipe: Recipe, share: DeviceShare) -> bool:
    asked = recipe.rollout.deterministic
    if recipe.rollout.backend == "vllm":
        return False  # its sums depend on who shares a batch
    return share.gpu == 0 and share.threads == 1 if asked == "auto" else asked


def backend_version(vllm: VllmPlan | None) -> str:
    """What snapshots carry: the library that computes the policy."""
    return f"transformers {installed('transformers')}" if vllm is None else f"vllm {vllm.version}"


def order(recipe: Recipe) -> OrderPlan:
    data = recipe.data
    return OrderPlan(
        shuffle=data.shuffle,
        seed=recipe.run.seed if data.seed is None else data.seed,
        train_batch_size=data.train_batch_size,
    )


def schedule(recipe: Recipe, *, prompts: int) -> SchedulePlan:
    trainer = recipe.trainer
    return SchedulePlan(
        total_training_steps=trainer.total_training_steps or _steps(recipe, prompts),
        save_freq=trainer.save_freq,
        test_freq=trainer.test_freq,
        val_before_train=trainer.val_before_train,
    )


def _steps(recipe: Recipe, prompts: int) -> int:
    """Full batches of all epochs together; the cursor runs on from one epoch into the next."""
    epochs, batch = recipe.trainer.total_epochs or 0, recipe.data.train_batch_size
    if steps := epochs * prompts // batch:
        return steps
    raise ConfigError(
        "trainer.total_epochs",
        value=epochs,
        problem=f"{prompts} prompts in {epochs} epochs do not fill one step of {batch}",
        fix=f"write {math.ceil(batch / prompts)} or more, or lower data.train_batch_size to {epochs * prompts}",
    )


def optim(recipe: Recipe, *, total_training_steps: int) -> OptimPlan:
    block = recipe.optim
    return OptimPlan(
        **block.model_dump(exclude={"schedule_steps"}), schedule_steps=block.schedule_steps or total_training_steps
    )


def tracking(recipe: Recipe) -> TrackingPlan:
    block = recipe.tracking
    sinks = tuple(dict.fromkeys([*block.sinks, "jsonl"]))
    return TrackingPlan(sinks=sinks, project=block.project, experiment_name=block.experiment_name or recipe.name)
