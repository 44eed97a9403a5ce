"""This file holds compile_plan: everything resolvable resolved once, from a recipe and the files it names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from miniverl.contract.canonical import json_digest
from miniverl.plan import slices
from miniverl.plan.architecture import refuse_foreign_layers
from miniverl.plan.facts import execution_facts, experiment_facts
from miniverl.plan.identity import ModelFolder, identify
from miniverl.plan.pair import (
    differences,
    refuse_long_sequences,
    refuse_two_tokenizers,
    stop_token_ids,
    vocabulary,
)
from miniverl.plan.placement import local_cpus, shares
from miniverl.plan.plan import DeviceShare, ModelPlan, ObjectivePlan, Plan, RolloutPlan, TeacherPlan, TrainerPlan
from miniverl.plan.questions import data_plan, refuse_without_answers
from miniverl.plan.vllm import vllm_plan
from miniverl.recipe.path import absolute
from miniverl.recipe.schema import Recipe


def compile_plan(recipe: Recipe, *, run_dir: str | None = None) -> Plan:
    """The plan of a recipe. ``run_dir`` overrides ``run.dir``; both are taken from the current directory, and links
    are resolved: a directory is one run by whatever path.

    Reads the models' files and every prompt; loads no weights. Raises ConfigError, DataError or ModelError. The same
    files and recipe give the same plan: no clock and no chance enters it.
    """
    folder = str(absolute(run_dir or recipe.run.dir or f"runs/{recipe.name}", field="run.dir", links=True))
    pair = _pair(recipe)
    train, prompts = data_plan(recipe.data.train_files, recipe.data, student=pair.student, field="data.train_files")
    notes = [*differences(pair.student, pair.teacher), *prompts.notes]
    evaluation, asked = None, 0
    if recipe.data.val_files:
        evaluation, prompts = data_plan(
            recipe.data.val_files, recipe.data, student=pair.student, field="data.val_files"
        )
        notes.extend(prompts.notes)
        asked = min(recipe.trainer.val_prompts or evaluation.prompts, evaluation.prompts)
        refuse_without_answers(prompts.prompts[:asked], field="data.val_files")
    sampling = slices.sampling(recipe, stop_token_ids=stop_token_ids(pair.student, pair.teacher))
    objective = slices.objective(recipe, vocabulary=vocabulary(pair.student, pair.teacher), sampling=sampling)
    schedule = slices.schedule(recipe, prompts=train.prompts)
    placement = shares(recipe.placement)
    return _with_facts(
        Plan(
            name=recipe.name,
            run_id=run_id(recipe.name, folder),
            run_dir=folder,
            seed=recipe.run.seed,
            sampling=sampling,
            evaluation_sampling=replace(sampling, temperature=0.0, top_p=1.0, top_k=0),
            samples_per_prompt=recipe.rollout.samples_per_prompt,
            conformance=recipe.rollout.conformance,
            train_data=train,
            evaluation_data=evaluation,
            evaluation_prompts=asked,
            order=slices.order(recipe),
            schedule=schedule,
            rollout=_rollout(recipe, pair, placement, run_dir=folder),
            trainer=_trainer(recipe, pair, placement, objective, schedule.total_training_steps),
            teacher=_teacher(recipe, pair, placement, objective),
            tracking=slices.tracking(recipe),
            ray_address=recipe.ray.address,
            resume=_resume(recipe.run.resume),
            placement=placement,
            experiment_facts={},
            execution_facts={},
            notes=(*notes, *_warnings(recipe, train.prompts), *_cpu_notes(recipe, placement)),
        )
    )


def run_id(name: str, run_dir: str) -> str:
    """Names a run among those of one machine: its name and a hash of its directory, in letters, digits and dashes."""
    safe = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:40]
    return f"{safe or 'run'}-{hashlib.sha256(run_dir.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pair:
    student: ModelFolder
    teacher: ModelFolder


def _pair(recipe: Recipe) -> _Pair:
    """Student and teacher, checked against each other and against the limits."""
    student = identify(recipe.models.student.id, field="models.student.id")
    teacher = identify(recipe.models.teacher.id, field="models.teacher.id")
    refuse_two_tokenizers(student, teacher)
    for model, field in ((student, "models.student.id"), (teacher, "models.teacher.id")):
        refuse_foreign_layers(model, field=field)
        refuse_long_sequences(
            model, field=field, prompt=recipe.data.max_prompt_length, response=recipe.rollout.max_new_tokens
        )
    return _Pair(student=student, teacher=teacher)


def _student(recipe: Recipe, pair: _Pair, placement: Mapping[str, DeviceShare]) -> ModelPlan:
    return ModelPlan(
        id=pair.student.id,
        path=str(pair.student.path),
        revision=pair.student.revision,
        tokenizer_digest=pair.student.tokenizer_digest,
        vocabulary=vocabulary(pair.student, pair.teacher),
        dtype=slices.student_dtype(recipe, placement),
        quantization=recipe.models.student.quantization,
        lora=slices.lora(recipe),
    )


def _rollout(recipe: Recipe, pair: _Pair, placement: Mapping[str, DeviceShare], *, run_dir: str) -> RolloutPlan:
    slots, length = slices.slots(recipe), slices.max_length(recipe)
    vllm = vllm_plan(recipe, slots=slots, max_length=length, run_dir=run_dir, model=pair.student.config)
    return RolloutPlan(
        model=_student(recipe, pair, placement),
        backend=recipe.rollout.backend,
        backend_version=slices.backend_version(vllm),
        slots=slots,
        max_length=length,
        parcel_tokens=recipe.trainer.ppo_max_token_len_per_gpu,
        deterministic=slices.deterministic(recipe, placement["rollout"]),
        compile_backend=recipe.rollout.compile_backend,
        vllm=vllm,
        share=placement["rollout"],
    )


def _trainer(
    recipe: Recipe, pair: _Pair, placement: Mapping[str, DeviceShare], objective: ObjectivePlan, steps: int
) -> TrainerPlan:
    return TrainerPlan(
        model=_student(recipe, pair, placement),
        objective=objective,
        optim=slices.optim(recipe, total_training_steps=steps),
        micro_batch_tokens=recipe.trainer.ppo_max_token_len_per_gpu,
        logprob_chunk=recipe.trainer.logprob_chunk,
        gradient_checkpointing=recipe.models.student.gradient_checkpointing,
        seed=recipe.run.seed,
        backend=recipe.rollout.backend,
        backend_version="",
        experiment="",
        share=placement["trainer"],
    )


def _teacher(
    recipe: Recipe, pair: _Pair, placement: Mapping[str, DeviceShare], objective: ObjectivePlan
) -> TeacherPlan:
    block = recipe.models.teacher
    return TeacherPlan(
        model=ModelPlan(
            id=pair.teacher.id,
            path=str(pair.teacher.path),
            revision=pair.teacher.revision,
            tokenizer_digest=pair.teacher.tokenizer_digest,
            vocabulary=vocabulary(pair.student, pair.teacher),
            dtype=slices.dtype(block.dtype, placement["teacher"]),
            quantization=block.quantization,
            lora=None,
        ),
        objective=objective,
        batch_tokens=recipe.trainer.ppo_max_token_len_per_gpu,
        logprob_chunk=recipe.trainer.logprob_chunk,
        evaluation_slots=slices.slots(recipe),
        max_length=slices.max_length(recipe),
        share=placement["teacher"],
    )


def _resume(asked: str) -> str:
    """auto and never are words; anything else is the path of a checkpoint."""
    return asked if asked in ("auto", "never") else str(absolute(asked, field="run.resume"))


def _warnings(recipe: Recipe, prompts: int) -> list[str]:
    batch = recipe.data.train_batch_size
    return [f"a step takes {batch} prompts and there are {prompts}: prompts repeat within a step"] * (batch > prompts)


def _cpu_notes(recipe: Recipe, placement: Mapping[str, DeviceShare]) -> list[str]:
    """Whether a cluster is there to attach to is not known here: RAY_ADDRESS is for the command line to read."""
    asked, have = sum(share.cpu for share in placement.values()), local_cpus()
    if recipe.ray.address is not None or round(asked, 4) <= have:
        return []
    return [
        f"the roles ask for {asked:g} CPUs (placement.<role>.cpu) and a Ray of this machine has {have}: "
        "the run starts only on a larger cluster (RAY_ADDRESS)"
    ]


def _with_facts(plan: Plan) -> Plan:
    """Facts are read off the resolved plan; the trainer signs its snapshots with their digest and the engine's name."""
    facts = experiment_facts(plan)
    return replace(
        plan,
        experiment_facts=facts,
        execution_facts=execution_facts(plan),
        trainer=replace(plan.trainer, experiment=json_digest(facts), backend_version=plan.rollout.backend_version),
    )
