"""This file holds the rules between keys: small named functions, listed in RULES. Each looks at one thing."""

from __future__ import annotations

import re
from collections.abc import Callable

from miniverl.errors import ConfigError
from miniverl.recipe.schema import Recipe

Rule = Callable[[Recipe], ConfigError | None]


LARGEST_RANK = 512
"""vLLM has kernels for LoRA up to this rank."""


def vllm_takes_adapters_alone(recipe: Recipe) -> ConfigError | None:
    if recipe.rollout.backend != "vllm" or recipe.models.student.lora is not None:
        return None
    return ConfigError(
        "rollout.backend",
        value="vllm",
        problem="every weight is trained, and a warm server takes up adapters only",
        fix="write rollout.backend: hf_cached, or add models.student.lora",
    )


def vllm_has_a_largest_rank(recipe: Recipe) -> ConfigError | None:
    lora = recipe.models.student.lora
    if recipe.rollout.backend != "vllm" or lora is None or lora.r <= LARGEST_RANK:
        return None
    return ConfigError(
        "models.student.lora.r",
        value=lora.r,
        problem=f"a vLLM server takes adapters up to rank {LARGEST_RANK}",
        fix=f"write {LARGEST_RANK} or less, or rollout.backend: hf_cached",
    )


def vllm_is_not_deterministic(recipe: Recipe) -> ConfigError | None:
    if recipe.rollout.backend != "vllm" or recipe.rollout.deterministic is not True:
        return None
    return ConfigError(
        "rollout.deterministic",
        value=True,
        problem="a vLLM server rounds a row by who shares its batch",
        fix="write auto, or rollout.backend: hf_cached",
    )


def hf_cached_alone_is_compiled(recipe: Recipe) -> ConfigError | None:
    backend = recipe.rollout.backend
    if not recipe.rollout.compile_backend or backend == "hf_cached":
        return None
    return ConfigError(
        "rollout.compile_backend",
        value=True,
        problem=f"{backend} has no decode step that we compile",
        fix="write false, or rollout.backend: hf_cached (a vLLM server compiles by rollout.vllm.enforce_eager: false)",
    )


def phases_are_not_built(recipe: Recipe) -> ConfigError | None:
    if recipe.placement.mode != "phases":
        return None
    return ConfigError(
        "placement.mode", value="phases", problem="roles that take turns are not built yet", fix="write shared"
    )


def the_run_has_one_length(recipe: Recipe) -> ConfigError | None:
    steps, epochs = recipe.trainer.total_training_steps, recipe.trainer.total_epochs
    if (steps is None) != (epochs is None):
        return None
    return ConfigError(
        "trainer.total_training_steps",
        value=steps,
        problem=f"the run's length is written {'twice' if steps else 'nowhere'} (trainer.total_epochs = {epochs})",
        fix="write exactly one of trainer.total_training_steps and trainer.total_epochs",
    )


def equal_bits_need_one_thread(recipe: Recipe) -> ConfigError | None:
    threads, on_gpu = recipe.placement.rollout.threads, recipe.placement.rollout.gpu > 0
    if recipe.rollout.deterministic is not True or threads == 1 or on_gpu:
        return None
    return ConfigError(
        "rollout.deterministic",
        value=True,
        problem=f"with {threads} threads a row's bits depend on who shares its batch",
        fix="write placement.rollout.threads: 1, or deterministic: auto",
    )


def one_sequence_fits_the_cache(recipe: Recipe) -> ConfigError | None:
    rollout, prompt = recipe.rollout, recipe.data.max_prompt_length
    needed = prompt + rollout.max_new_tokens
    if rollout.max_padded_tokens >= needed:
        return None
    return ConfigError(
        "rollout.max_padded_tokens",
        value=rollout.max_padded_tokens,
        problem=f"one sequence needs {needed} tokens (data.max_prompt_length {prompt} + rollout.max_new_tokens "
        f"{rollout.max_new_tokens}), so not one slot fits",
        fix=f"write at least {needed}, better {8 * needed} for 8 slots, or lower one of the two limits",
    )


def sampled_k1_needs_chance(recipe: Recipe) -> ConfigError | None:
    if recipe.objective != "sampled_k1" or recipe.rollout.temperature > 0:
        return None
    return ConfigError(
        "rollout.temperature",
        value=recipe.rollout.temperature,
        problem="sampled_k1 estimates a divergence from sampled tokens, and greedy tokens are not samples",
        fix="write 1.0, or objective: gkd",
    )


def greedy_samples_are_all_one(recipe: Recipe) -> ConfigError | None:
    rollout = recipe.rollout
    if rollout.temperature > 0 or rollout.samples_per_prompt == 1:
        return None
    return ConfigError(
        "rollout.samples_per_prompt",
        value=rollout.samples_per_prompt,
        problem="at rollout.temperature 0 every sample of a prompt is the same",
        fix="write 1, or a temperature above 0",
    )


def importance_weights_belong_to_sampled_k1(recipe: Recipe) -> ConfigError | None:
    if recipe.objective == "sampled_k1" or recipe.distillation.rollout_is is None:
        return None
    return ConfigError(
        "distillation.rollout_is",
        value=recipe.distillation.rollout_is,
        problem=f"{recipe.objective} sums over the vocabulary and has no sampled estimate to weigh",
        fix="write null, or objective: sampled_k1",
    )


def importance_weights_need_recorded_logprobs(recipe: Recipe) -> ConfigError | None:
    if recipe.distillation.rollout_is is None or recipe.rollout.record_logprobs:
        return None
    return ConfigError(
        "rollout.record_logprobs",
        value=False,
        problem="distillation.rollout_is compares the trainer's log-probs with the recorded ones",
        fix="write true, or distillation.rollout_is: null",
    )


def four_bits_are_not_trained_directly(recipe: Recipe) -> ConfigError | None:
    student = recipe.models.student
    if student.quantization == "none" or student.lora is not None:
        return None
    return ConfigError(
        "models.student.quantization",
        value=student.quantization,
        problem="weights held in 4 bits cannot be trained themselves",
        fix="write a models.student.lora block, or quantization: none",
    )


def warmup_ends_within_the_schedule(recipe: Recipe) -> ConfigError | None:
    length = recipe.optim.schedule_steps or recipe.trainer.total_training_steps
    if length is None or recipe.optim.lr_warmup_steps <= length:
        return None
    return ConfigError(
        "optim.lr_warmup_steps",
        value=recipe.optim.lr_warmup_steps,
        problem=f"the schedule is over after {length} steps",
        fix=f"write at most {length}",
    )


def target_modules_are_a_pattern(recipe: Recipe) -> ConfigError | None:
    lora = recipe.models.student.lora
    if lora is None or not isinstance(lora.target_modules, str):
        return None
    try:
        re.compile(lora.target_modules)
    except (re.error, OverflowError, RecursionError) as error:
        return ConfigError(
            "models.student.lora.target_modules",
            value=lora.target_modules,
            problem=f"is no regular expression ({error})",
            fix="write all-linear, or a list of module names",
        )
    return None


RULES: tuple[Rule, ...] = (
    vllm_takes_adapters_alone,
    vllm_has_a_largest_rank,
    vllm_is_not_deterministic,
    hf_cached_alone_is_compiled,
    phases_are_not_built,
    the_run_has_one_length,
    one_sequence_fits_the_cache,
    sampled_k1_needs_chance,
    greedy_samples_are_all_one,
    importance_weights_belong_to_sampled_k1,
    importance_weights_need_recorded_logprobs,
    four_bits_are_not_trained_directly,
    equal_bits_need_one_thread,
    warmup_ends_within_the_schedule,
    target_modules_are_a_pattern,
)
