"""The two digests: what makes another experiment, and what only executes the same one differently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plan.conftest import write_model, write_prompts

SEMANTIC = {
    "run.seed": 1,
    "objective": "sampled_k1",
    "models.student.dtype": "bfloat16",
    "models.student.quantization": "nf4",
    "models.student.lora.r": 8,
    "models.student.lora.lora_alpha": 8,
    "models.student.lora.lora_dropout": 0.1,
    "models.student.lora.target_modules": ["q_proj"],
    "models.student.lora": None,
    "models.teacher.dtype": "bfloat16",
    "models.teacher.quantization": "nf4",
    "data.max_prompt_length": 9,
    "data.truncation": "left",
    "data.filter_overlong_prompts": True,
    "data.train_batch_size": 5,
    "data.shuffle": False,
    "data.seed": 1,
    "rollout.backend": "hf_reference",
    "rollout.samples_per_prompt": 3,
    "rollout.temperature": 0.9,
    "rollout.top_p": 0.9,
    "rollout.top_k": 5,
    "rollout.max_new_tokens": 7,
    "rollout.record_logprobs": False,
    "distillation.divergence": "forward_kl",
    "distillation.topk": 3,
    "distillation.temperature": 2.0,
    "distillation.loss_agg_mode": "seq-mean-token-sum",
    "optim.lr": 2e-4,
    "optim.betas": [0.9, 0.95],
    "optim.eps": 1e-6,
    "optim.weight_decay": 0.01,
    "optim.clip_grad": float("inf"),
    "optim.lr_scheduler_type": "cosine",
    "optim.lr_warmup_steps": 1,
    "trainer.ppo_max_token_len_per_gpu": 2048,
}
EXECUTION = {
    "name": "other",
    "run.dir": "elsewhere",
    "models.student.gradient_checkpointing": False,
    "data.val_files": [],
    "rollout.prompt_batch_size": 1,
    "rollout.max_padded_tokens": 32,
    "rollout.deterministic": False,
    "trainer.total_training_steps": 6,
    "trainer.save_freq": 1,
    "trainer.test_freq": 1,
    "trainer.val_before_train": False,
    "trainer.val_prompts": 1,
    "trainer.logprob_chunk": 64,
    "placement.trainer.threads": 2,
    "placement.rollout.cpu": 0.5,
    "tracking.sinks": ["jsonl", "wandb"],
    "tracking.project": "other",
    "tracking.experiment_name": "other",
    "ray.address": "auto",
}


@pytest.mark.parametrize("key", SEMANTIC)
def test_another_meaning_is_another_experiment(desk, key):
    before, after = desk.plan(), desk.plan({key: SEMANTIC[key]})
    assert after.experiment != before.experiment
    assert after.trainer.experiment == after.experiment


@pytest.mark.parametrize("key", EXECUTION)
def test_another_execution_is_the_same_experiment(desk, key):
    before, after = desk.plan(), desk.plan({key: EXECUTION[key]})
    assert after.experiment == before.experiment
    assert after.execution != before.execution


@pytest.mark.parametrize(
    "changes",
    [
        {"run.resume": "never"},
        {"data.prompt_key": "prompt"},
        {"distillation.jsd_beta": 0.1},
        {"optim.schedule_steps": 9},
    ],
)
def test_what_nobody_reads_changes_neither(desk, changes):
    before, after = desk.plan(), desk.plan(changes)
    assert (after.experiment, after.execution) == (before.experiment, before.execution)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write_model(folder / "student", weight=2.0),
        lambda folder: write_model(folder / "teacher", weight=2.0),
        lambda folder: write_model(folder / "student", hidden_size=9),
        lambda folder: write_prompts(folder / "train.parquet", ["1+1"]),
        lambda folder: (folder / "student" / "chat_template.jinja").write_text("{{ messages[0]['content'] }}?"),
        lambda folder: write_model(folder / "teacher", weight=1.0, eos_token_id=[12, 13]),
    ],
    ids=["student weights", "teacher weights", "student config", "prompts", "template", "end ids"],
)
def test_other_files_are_another_experiment(desk, change):
    before = desk.plan()
    change(desk.folder)
    assert desk.plan().experiment != before.experiment


def test_the_same_files_elsewhere_are_the_same_experiment(desk, new_model):
    before = desk.plan()
    after = desk.plan({"models.student.id": str(new_model("moved"))})
    assert after.experiment == before.experiment
    assert after.execution != before.execution


def test_the_length_of_a_run_matters_only_where_it_bends_the_schedule(desk):
    longer = {"trainer.total_training_steps": 9}
    cosine = {"optim.lr_scheduler_type": "cosine"}
    fixed = {**cosine, "optim.schedule_steps": 50}
    assert desk.plan(longer).experiment == desk.plan().experiment
    assert desk.plan({**cosine, **longer}).experiment != desk.plan(cosine).experiment
    assert desk.plan({**fixed, **longer}).experiment == desk.plan(fixed).experiment


def test_sampled_k1_reads_its_own_keys_and_not_those_of_gkd(desk):
    k1 = {"objective": "sampled_k1"}
    assert desk.plan({**k1, "distillation.divergence": "jsd"}).experiment == desk.plan(k1).experiment
    assert desk.plan({**k1, "distillation.rollout_is_threshold": 3.0}).experiment != desk.plan(k1).experiment
    assert desk.plan({**k1, "distillation.rollout_is": None}).experiment != desk.plan(k1).experiment


def test_jsd_reads_its_beta(desk):
    jsd = {"distillation.divergence": "jsd"}
    assert desk.plan({**jsd, "distillation.jsd_beta": 0.1}).experiment != desk.plan(jsd).experiment


def test_facts_survive_json_unchanged(desk):
    plan = desk.plan({"optim.clip_grad": float("inf")})
    for facts in (plan.experiment_facts, plan.execution_facts):
        assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_the_facts_of_an_experiment_are_these(desk):
    """Another fact is another digest for every run that exists: change the golden list only on purpose."""
    golden = Path(__file__).parents[1] / "golden" / "experiment_facts.txt"
    assert sorted(desk.plan().experiment_facts) == golden.read_text(encoding="utf-8").split()


def test_no_path_and_no_machine_is_part_of_an_experiment(desk):
    assert str(desk.folder) not in json.dumps(desk.plan().experiment_facts)


def test_the_length_of_a_schedule_names_both_keys_that_decide_it(desk):
    facts = desk.plan({"optim.lr_scheduler_type": "cosine"}).experiment_facts
    assert [key for key in facts if "optim.schedule_steps" in key and "trainer.total_training_steps" in key]
