"""The whole loop in one process, on the packaged models: what a run is worth when it is interrupted anywhere."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from miniverl.contract.event import EVALUATION, STEP
from miniverl.errors import RecordError, Stopped
from miniverl.metrics import declared
from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles, run_locally
from miniverl.training.loop import train
from tests.finished import bytes_of, finish


def test_the_same_run_twice_ends_with_the_same_bytes(plan_for, untouched):
    plan = plan_for("again")
    finish(plan)
    assert bytes_of(plan) == untouched


@pytest.mark.slow
def test_another_seed_ends_with_other_bytes(plan_for, untouched):
    plan = plan_for("other", "run.seed=2")
    finish(plan)
    assert bytes_of(plan)["chain"] != untouched["chain"]
    assert bytes_of(plan)["adapter.safetensors"] != untouched["adapter.safetensors"]


def test_a_finished_run_started_again_changes_nothing(plan_for, untouched):
    plan = plan_for("twice")
    finish(plan)
    finish(plan)
    assert bytes_of(plan) == untouched


@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_stopped_run_goes_on_to_the_bytes_of_the_untouched_one(plan_for, untouched, after):
    plan = plan_for(f"stopped-{after}")
    looks = iter(range(10_000))
    roles = local_roles(plan)
    run = assemble(plan, roles, stop=lambda: next(looks) >= after, say=lambda event: None)
    with pytest.raises(Stopped):
        train(run)
    run.save_after_stop()
    roles.journal.release()
    finish(plan)
    assert bytes_of(plan) == untouched


@pytest.mark.slow
def test_no_recorded_group_is_generated_twice(plan_for):
    plan = plan_for("counted", "trainer.save_freq=0")
    roles = local_roles(plan)
    asked: Counter[str] = Counter()

    class Counting:
        def __getattr__(self, name):
            return getattr(roles.rollout, name)

        def generate(self, requests):
            asked.update({r.group_id for r in requests if r.samples == plan.samples_per_prompt})  # not a probe's
            return roles.rollout.generate(requests)

    counted = dataclasses.replace(roles, rollout=Counting())
    looks = iter(range(10_000))
    run = assemble(plan, counted, stop=lambda: next(looks) >= 5, say=lambda event: None)
    with pytest.raises(Stopped):
        train(run)
    recorded = roles.journal.facts().rows
    assert recorded > 8
    roles.journal.release()
    roles = local_roles(plan)
    first, asked = asked, Counter()
    train(assemble(plan, dataclasses.replace(roles, rollout=Counting()), stop=lambda: False, say=lambda event: None))
    roles.journal.release()
    assert sum(asked.values()) == 32 - recorded
    assert len(first) >= recorded


def test_a_directory_that_holds_another_experiment_is_refused_with_the_fields_that_differ(plan_for):
    finish(plan_for("one"))
    with pytest.raises(RecordError, match=r"optim\.lr"):
        run_locally(plan_for("one", "optim.lr=0.5"))


def test_the_rollout_samples_from_the_trainers_own_policy_in_four_bits(plan_for):
    events = []
    plan = plan_for("nf4", "models.student.quantization=nf4", "trainer.total_training_steps=3", "optim.lr=0.01")
    finish(plan, say=events.append)
    steps = [event.values for event in events if event.kind == STEP]
    assert len(steps) == 3
    for values in steps:
        assert values[declared.LOGP_DIFF_MAX.name] < 5e-5
        assert values[declared.GRAD_NORM.name] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("models.student.lora=null", "optim.lr=1e-4"),
        ("distillation.topk=8", "distillation.divergence=forward_kl"),
        ("rollout.temperature=0.7", "rollout.top_p=0.9", "rollout.top_k=5"),
        ("rollout.backend=hf_reference",),
        ("distillation.loss_agg_mode=seq-mean-token-mean", "distillation.divergence=jsd"),
    ],
    ids=lambda o: o[0],
)
def test_every_kind_of_recipe_runs_and_samples_from_its_own_policy(plan_for, overrides):
    events = []
    finish(plan_for("kind", "trainer.total_training_steps=2", *overrides), say=events.append)
    steps = [event.values for event in events if event.kind == STEP]
    assert len(steps) == 2
    assert all(values[declared.LOGP_DIFF_MAX.name] < 5e-5 for values in steps)


def test_evaluations_are_of_real_answers_and_come_at_the_steps_asked_for(plan_for):
    events = []
    plan = plan_for("evaluated")
    roles = finish(plan, say=events.append)
    assert [(e.step, e.values["n"]) for e in events if e.kind == EVALUATION] == [(0, 16), (0, 16), (2, 16), (4, 16)]
    lines = [json.loads(line) for line in (Path(plan.run_dir) / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "val/accuracy" in line] == [0, 2, 4]
    del roles
