"""A plan shown to a reader and written to a run directory."""

from __future__ import annotations

import json
import subprocess
import sys

from miniverl.plan.show import describe, to_json


def test_the_lines_answer_what_a_reader_asks(desk):
    text = "\n".join(describe(desk.plan()))
    for words in (
        str(desk.folder / "student"),
        "LoRA r 32 on all-linear",
        "end at id 12 or after 8 tokens",
        "100 prompts of",
        "2 asked greedily",
        "gkd: reverse_kl, exact",
        "5 of 4 prompts x 2 samples, at most 64 new tokens each",
        "hf_cached, 8 slots of 16 tokens",
        "deterministic",
        "trainer    gpu 0, cpu 0.4, threads 1",
        desk.plan().experiment,
        desk.plan().execution,
    ):
        assert words in text


def test_notes_are_shown(desk):
    assert any("prompts repeat" in line for line in describe(desk.plan({"data.train_batch_size": 500})))


def test_variants_are_told_in_their_own_words(desk):
    lines = "\n".join(
        describe(
            desk.plan(
                {
                    "objective": "sampled_k1",
                    "models.student.lora": None,
                    "optim.lr_warmup_steps": 2,
                    "rollout.deterministic": False,
                    "data.val_files": [],
                    "models.teacher.quantization": "nf4",
                }
            )
        )
    )
    for words in ("all weights trained", "importance weights token", "after 2 steps of warm-up", "float32 over nf4"):
        assert words in lines
    assert "held out" not in lines


def test_the_document_holds_the_whole_plan_and_its_digests(desk):
    plan = desk.plan({"optim.clip_grad": float("inf")})
    document = json.loads(to_json(plan))
    assert document["experiment"] == plan.experiment
    assert document["execution"] == plan.execution
    assert document["experiment_facts"] == plan.experiment_facts
    assert document["trainer"]["optim"]["clip_grad"] == "inf"
    assert to_json(plan) == to_json(desk.plan({"optim.clip_grad": float("inf")}))


def test_planning_loads_neither_torch_nor_ray_nor_transformers():
    probe = (
        "import sys, miniverl.plan.compile, miniverl.plan.show, miniverl.recipe.load; "
        "print([name for name in ('torch', 'ray', 'transformers', 'peft') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
