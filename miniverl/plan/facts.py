"""This file holds the facts behind a plan's two digests: what decides the experiment, and how it is executed.

Facts go by the recipe's dotted keys where there is one, so that a difference can be told in the user's words. Their
values are what JSON can hold: facts read back from a run directory compare equal.
"""

from __future__ import annotations

import dataclasses
import math
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from miniverl.contract.group import SCHEMA_VERSION
from miniverl.plan.plan import DataPlan, ModelPlan, ObjectivePlan, OptimPlan, Plan
from miniverl.seeds import SEEDS_VERSION

LIBRARIES = (
    "miniverl-ray",
    "torch",
    "transformers",
    "peft",
    "bitsandbytes",
    "tokenizers",
    "safetensors",
    "numpy",
    "ray",
)
"""Distributions whose version may change a float or a file."""

SCHEDULE = "optim.schedule_steps (trainer.total_training_steps where it is not written)"
"""Two keys decide it, and a user whose longer run is refused may have written only the second."""

READS: Mapping[str, tuple[str, ...]] = {
    "gkd": ("divergence", "topk", "temperature", "loss_agg_mode"),
    "sampled_k1": ("temperature", "loss_agg_mode", "rollout_is"),
}
"""What each objective reads; a key it never looks at makes no other experiment."""


def experiment_facts(plan: Plan) -> dict[str, Any]:
    """Everything that decides what is learned, hardware and luck of scheduling apart."""
    sampling, data, order = plan.sampling, plan.train_data, plan.order
    facts = {
        "seeds.version": SEEDS_VERSION,
        "trajectory.schema": SCHEMA_VERSION,
        "run.seed": plan.seed,
        "objective": plan.trainer.objective.name,
        **_model("models.student", plan.trainer.model),
        **_lora(plan.trainer.model),
        **_model("models.teacher", plan.teacher.model),
        "models.tokenizer": plan.trainer.model.tokenizer_digest,
        "models.vocabulary": plan.trainer.model.vocabulary,
        "data.digest": data.digest,
        "data.template": data.template_digest,
        "data.max_prompt_length": data.max_prompt_length,
        "data.truncation": data.truncation,
        "data.filter_overlong_prompts": data.filter_overlong_prompts,
        **{f"data.{name}": getattr(order, name) for name in ("train_batch_size", "shuffle", "seed")},
        "rollout.backend": plan.rollout.backend,
        "rollout.samples_per_prompt": plan.samples_per_prompt,
        **{f"rollout.{name}": getattr(sampling, name) for name in ("temperature", "top_p", "top_k", "max_new_tokens")},
        "rollout.stop": sampling.stop,
        "rollout.stop_token_ids": sampling.stop_token_ids,
        "rollout.record_logprobs": sampling.logprobs,
        **_objective(plan.trainer.objective),
        **_optim(plan.trainer.optim),
        # Parcels and micro-batches order the sums of floats.
        "trainer.ppo_max_token_len_per_gpu": plan.trainer.micro_batch_tokens,
    }
    return {key: _plain(value) for key, value in facts.items()}


def execution_facts(plan: Plan) -> dict[str, Any]:
    """How and where it is executed: may change when a run is continued, and is then named."""
    facts = {
        "name": plan.name,
        "run.dir": plan.run_dir,
        **_origin("models.student", plan.trainer.model),
        **_origin("models.teacher", plan.teacher.model),
        "models.student.gradient_checkpointing": plan.trainer.gradient_checkpointing,
        "data.train_files": _files(plan.train_data),
        "data.val_files": _files(plan.evaluation_data),
        "data.val_digest": plan.evaluation_data.digest if plan.evaluation_data else None,
        "rollout.slots": plan.rollout.slots,
        "rollout.deterministic": plan.rollout.deterministic,
        "rollout.compile_backend": plan.rollout.compile_backend,
        "rollout.conformance": plan.conformance,
        "rollout.backend_version": plan.rollout.backend_version,
        "rollout.vllm": dataclasses.asdict(plan.rollout.vllm) if plan.rollout.vllm else None,
        **{f"trainer.{name}": value for name, value in dataclasses.asdict(plan.schedule).items()},
        "trainer.val_prompts": plan.evaluation_prompts,
        "trainer.logprob_chunk": plan.trainer.logprob_chunk,
        **{
            f"placement.{role}.{name}": value
            for role, share in plan.placement.items()
            for name, value in dataclasses.asdict(share).items()
        },
        **{f"tracking.{name}": value for name, value in dataclasses.asdict(plan.tracking).items()},
        "ray.address": plan.ray_address,
        "machine.python": platform.python_version(),
        "machine.system": platform.system(),
        "machine.architecture": platform.machine(),
        **{f"versions.{name}": installed(name) for name in LIBRARIES},
    }
    return {key: _plain(value) for key, value in facts.items()}


def installed(distribution: str) -> str | None:
    """Its version here; None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _model(key: str, model: ModelPlan) -> dict[str, Any]:
    return {f"{key}.{name}": getattr(model, name) for name in ("revision", "dtype", "quantization")}


def _lora(model: ModelPlan) -> dict[str, Any]:
    key = "models.student.lora"
    if model.lora is None:
        return {key: None}
    return {f"{key}.{name}": value for name, value in dataclasses.asdict(model.lora).items()}


def _objective(objective: ObjectivePlan) -> dict[str, Any]:
    read = [*READS[objective.name]]
    if objective.name == "gkd" and objective.divergence == "jsd":
        read.append("jsd_beta")
    if objective.rollout_is is not None:
        read.append("rollout_is_threshold")
    return {f"distillation.{name}": getattr(objective, name) for name in read}


def _optim(optim: OptimPlan) -> dict[str, Any]:
    """A constant rate has no length; otherwise the length of the schedule bends every step."""
    facts = {f"optim.{name}": value for name, value in dataclasses.asdict(optim).items()}
    length = facts.pop("optim.schedule_steps")
    return facts if optim.lr_scheduler_type == "constant" else {**facts, SCHEDULE: length}


def _origin(key: str, model: ModelPlan) -> dict[str, Any]:
    return {f"{key}.id": model.id, f"{key}.path": model.path}


def _files(data: DataPlan | None) -> list[str]:
    return [file.path for file in data.files] if data else []


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf"  # JSON has no such number
    return value
