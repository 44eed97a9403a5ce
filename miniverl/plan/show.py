"""This file holds the showing of a plan: as lines for a reader, and as a JSON document for a run directory."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from typing import Any

from miniverl.plan.plan import DataPlan, ModelPlan, Plan


def describe(plan: Plan) -> list[str]:
    """The plan in plain lines, without colour or clock."""
    return [f"{label:<12}{text}" for label, text in _lines(plan)]


def to_json(plan: Plan) -> str:
    """The whole plan with its two digests; keys sorted, ends with a newline. Equal plans give equal bytes."""
    document = {**dataclasses.asdict(plan), "experiment": plan.experiment, "execution": plan.execution}
    return json.dumps(_plain(document), indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _lines(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "run", f"{plan.name} in {plan.run_dir}"
    yield "student", _model(plan.trainer.model, trained=True)
    yield "teacher", _model(plan.teacher.model, trained=False)
    yield "tokenizer", f"{plan.trainer.model.vocabulary} ids, {plan.trainer.model.tokenizer_digest[:12]}"
    yield "responses", f"end at {_ids(plan.sampling.stop_token_ids)} or after {plan.sampling.max_new_tokens} tokens"
    yield "data", _data(plan.train_data)
    if plan.evaluation_data is not None:
        yield "held out", f"{_data(plan.evaluation_data)}, {plan.evaluation_prompts} asked greedily"
    yield "objective", _objective(plan)
    yield "optimizer", _optimizer(plan)
    yield "steps", _steps(plan)
    yield "rollout", _rollout(plan)
    for role, share in plan.placement.items():
        yield (
            "placement" if role == "controller" else "",
            (f"{role:<11}gpu {share.gpu:g}, cpu {share.cpu:g}, threads {share.threads}"),
        )
    yield "metrics", ", ".join(plan.tracking.sinks)
    yield "experiment", plan.experiment
    yield "execution", plan.execution
    for note in plan.notes:
        yield "note", note


def _model(model: ModelPlan, *, trained: bool) -> str:
    weights = model.dtype if model.quantization == "none" else f"{model.dtype} over {model.quantization}"
    parts = [model.id, weights, f"revision {model.revision[:12]}"]
    if model.lora is not None:
        targets = model.lora.target_modules
        parts.append(f"LoRA r {model.lora.r} on {targets if isinstance(targets, str) else ', '.join(targets)}")
    elif trained:
        parts.append("all weights trained")
    return ", ".join(parts)


def _ids(ids: tuple[int, ...]) -> str:
    return f"{'id' if len(ids) == 1 else 'ids'} {', '.join(map(str, ids))}"


def _data(data: DataPlan) -> str:
    return f"{data.prompts} prompts of {', '.join(file.path for file in data.files)}, {data.digest[:12]}"


def _objective(plan: Plan) -> str:
    objective = plan.trainer.objective
    detail = f"sampled tokens, importance weights {objective.rollout_is or 'off'}"
    if objective.name == "gkd":
        kept = "exact" if objective.topk is None else f"top {objective.topk} and tail"
        detail = f"{objective.divergence}, {kept}"
    return f"{objective.name}: {detail}, {objective.loss_agg_mode}, temperature {objective.temperature:g}"


def _optimizer(plan: Plan) -> str:
    optim = plan.trainer.optim
    warmup = f" after {optim.lr_warmup_steps} steps of warm-up" if optim.lr_warmup_steps else ""
    return f"AdamW, learning rate {optim.lr:g} {optim.lr_scheduler_type}{warmup}, clipped at {optim.clip_grad:g}"


def _steps(plan: Plan) -> str:
    rows = plan.order.train_batch_size * plan.samples_per_prompt
    return (
        f"{plan.schedule.total_training_steps} of {plan.order.train_batch_size} prompts x {plan.samples_per_prompt} "
        f"samples, at most {rows * plan.sampling.max_new_tokens} new tokens each; "
        f"evaluated every {plan.schedule.test_freq}, saved every {plan.schedule.save_freq}"
    )


def _rollout(plan: Plan) -> str:
    rollout = plan.rollout
    mode = "deterministic" if rollout.deterministic else "not bit-deterministic"
    return (
        f"{rollout.backend}, {rollout.slots} slots of {rollout.max_length} tokens, temperature "
        f"{plan.sampling.temperature:g}, {mode}; parcels of {rollout.parcel_tokens} tokens"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf"  # JSON has no such number
    return value
