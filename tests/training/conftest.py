"""This file holds small plans and made-up parcels on the packaged tiny models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from miniverl.contract.group import Group
from miniverl.contract.parcel import KEPT, Parcel
from miniverl.data.packaged import resource
from miniverl.plan.compile import compile_plan
from miniverl.plan.plan import (
    DeviceShare,
    LoraPlan,
    ModelPlan,
    ObjectivePlan,
    OptimPlan,
    Plan,
    TeacherPlan,
    TrainerPlan,
)
from miniverl.recipe.load import load_recipe
from tests.finished import bytes_of, finish

SHARE = DeviceShare(gpu=0.0, cpu=1.0, threads=1)


def tiny(name: str, *, lora: bool, quantization: str = "none") -> ModelPlan:
    return ModelPlan(
        id=f"miniverl://{name}", path=str(resource(f"miniverl://{name}")), revision="r", tokenizer_digest="t",
        vocabulary=20, dtype="float32", quantization=quantization,
        lora=LoraPlan(r=8, lora_alpha=16, lora_dropout=0.0, target_modules="all-linear") if lora else None,
    )  # fmt: skip


OBJECTIVE = ObjectivePlan(
    name="gkd", divergence="reverse_kl", jsd_beta=0.5, topk=None, temperature=1.0, loss_agg_mode="token-mean",
    horizon=8, rollout_is=None, rollout_is_threshold=2.0,
)  # fmt: skip


@pytest.fixture
def trainer_plan() -> Callable[..., TrainerPlan]:
    def make(*, micro_batch_tokens: int = 4096, quantization: str = "none", lora: bool = True, lr: float = 1e-3,
             logprob_chunk: int = 256, lora_dropout: float = 0.0, **objective) -> TrainerPlan:  # fmt: skip
        model = tiny("tiny-student", lora=lora, quantization=quantization)
        if lora and lora_dropout:
            model = dataclasses.replace(model, lora=dataclasses.replace(model.lora, lora_dropout=lora_dropout))
        return TrainerPlan(
            model=model,
            objective=dataclasses.replace(OBJECTIVE, **objective),
            optim=OptimPlan(lr=lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, clip_grad=1.0,
                            lr_scheduler_type="constant", lr_warmup_steps=0, schedule_steps=10),
            micro_batch_tokens=micro_batch_tokens, logprob_chunk=logprob_chunk, gradient_checkpointing=False, seed=1,
            backend="hf_cached", backend_version="transformers", experiment="e", share=SHARE,
        )  # fmt: skip

    return make


@pytest.fixture
def teacher_plan() -> Callable[..., TeacherPlan]:
    def make(model: str = "tiny-teacher", *, batch_tokens: int = 4096, **objective) -> TeacherPlan:
        return TeacherPlan(
            model=tiny(model, lora=False), objective=dataclasses.replace(OBJECTIVE, **objective),
            batch_tokens=batch_tokens, logprob_chunk=16, evaluation_slots=16, max_length=24, share=SHARE,
        )  # fmt: skip

    return make


@pytest.fixture
def parcel_for() -> Callable[..., Parcel]:
    """A parcel of made-up tokens under the identity of a trainer's present policy."""

    def make(trainer, *, groups: int = 4, samples: int = 2, step: int = 1, seed: int = 0, first: int = 0) -> Parcel:
        snapshot = trainer.policy().snapshot
        random = np.random.default_rng([seed, first])
        return Parcel(
            step=step,
            groups=tuple(_group(first + index, samples, snapshot, random) for index in range(groups)),
            fates=(KEPT,) * groups,
        )

    return make


def _group(cursor: int, samples: int, snapshot, random: np.random.Generator) -> Group:
    lengths = random.integers(1, 6, samples)
    shape = (samples, int(lengths.max()))
    return Group(
        id=f"{cursor:012d}-made", cursor=cursor, policy_version=snapshot.version, snapshot_digest=snapshot.digest,
        tensor_digest=snapshot.tensor_digest, prompt_row=cursor, prompt_digest=f"p{cursor}",
        prompt_ids=random.integers(6, 16, int(random.integers(3, 9))), data_source="made", ground_truth=None,
        seeds=np.arange(samples), lengths=lengths, token_ids=random.integers(6, 16, shape),
        logps=-random.random(shape), behaviour_logps=None, temperature=1.0,
        stop_reasons=("length",) * samples, stop_matches=("",) * samples, texts=("",) * samples,
    )  # fmt: skip


def small_plan(folder: Path, *overrides: str, recipe: str = "quickstart") -> Plan:
    """The quickstart shrunk to four steps of eight prompts."""
    small = (
        "data.train_batch_size=8", "rollout.samples_per_prompt=2", "trainer.total_training_steps=4",
        "trainer.save_freq=2", "trainer.test_freq=2", "trainer.val_prompts=16",
        "trainer.ppo_max_token_len_per_gpu=96",
    )  # fmt: skip
    return compile_plan(load_recipe(recipe, [*small, f"run.dir={folder}", *overrides]))


@pytest.fixture
def plan_for(tmp_path) -> Callable[..., Plan]:
    """The small run in a directory of its own."""
    return lambda name="run", *overrides, **options: small_plan(tmp_path / name, *overrides, **options)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory) -> dict[str, object]:
    """What the small run ends with when nobody touches it."""
    plan = small_plan(tmp_path_factory.mktemp("untouched"))
    finish(plan)
    return bytes_of(plan)
