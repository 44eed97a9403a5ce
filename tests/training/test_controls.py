"""What the quickstart learns, and what it does not learn when the teacher has nothing to say: the controls."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles
from miniverl.training.loop import train

pytestmark = pytest.mark.slow

STEPS = 30
GAIN = 0.20
"""Held-out accuracy that STEPS steps must add, of 256 sums; no control may add a quarter of it."""


@pytest.fixture
def gain_of(plan_for):
    """Runs the quickstart for STEPS steps and returns what accuracy it added."""

    def run(name, *overrides, recipe="quickstart", roles_with=lambda roles: roles):
        words = (
            f"trainer.total_training_steps={STEPS}", "data.train_batch_size=64", "trainer.val_prompts=256",
            "trainer.test_freq=0", "trainer.save_freq=0", "trainer.ppo_max_token_len_per_gpu=1024", *overrides,
        )  # fmt: skip
        roles = local_roles(plan := plan_for(name, *words, recipe=recipe))
        train(assemble(plan, roles_with(roles), stop=lambda: False, say=lambda event: None))
        students = [e for e in roles.journal.evaluations() if e.subject == "student"]
        roles.journal.release()
        assert [(e.step, e.n) for e in students] == [(0, 256), (STEPS, 256)]
        return students[1].accuracy - students[0].accuracy

    return run


def test_the_student_learns_from_the_teacher(gain_of):
    assert gain_of("learns") >= GAIN


def test_sampled_k1_learns_on_the_same_data(gain_of):
    assert gain_of("k1", recipe="quickstart-k1") >= GAIN


def test_without_a_learning_rate_nothing_changes(gain_of):
    assert gain_of("still", "optim.lr=0.0") == 0.0


def test_a_teacher_that_is_the_student_adds_nothing(gain_of):
    assert gain_of("itself", "models.teacher.id=miniverl://tiny-student") < GAIN / 4


def test_targets_shuffled_over_the_tokens_add_nothing(gain_of):
    class Shuffling:
        def __init__(self, teacher):
            self._teacher = teacher
            self._random = np.random.default_rng(0)

        def __getattr__(self, name):
            return getattr(self._teacher, name)

        def score(self, parcel):
            targets = self._teacher.score(parcel)
            return dataclasses.replace(targets, exact=self._random.permutation(targets.exact))

    shuffled = gain_of("shuffled", roles_with=lambda r: dataclasses.replace(r, teacher=Shuffling(r.teacher)))
    assert shuffled < GAIN / 4
