"""Layers that no engine decodes are named before anything is loaded."""

from __future__ import annotations

import pytest

from miniverl.errors import ModelError
from miniverl.plan.architecture import FOREIGN, refuse_foreign_layers
from miniverl.plan.identity import identify


@pytest.fixture
def refuse(new_model):
    return lambda **config: refuse_foreign_layers(identify(str(new_model("s", **config)), field="f"), field="f")


def test_full_and_sliding_attention_pass(refuse):
    refuse()
    refuse(layer_types=["sliding_attention", "full_attention"], sliding_window=512)


@pytest.mark.parametrize("kind", ["linear_attention", "chunked_attention"])
def test_another_kind_of_layer_is_named_with_what_works(refuse, kind):
    with pytest.raises(ModelError, match=f"{kind}.*Qwen3"):
        refuse(layer_types=["full_attention", kind])


@pytest.mark.parametrize("key", FOREIGN)
def test_a_key_that_means_other_arithmetic_is_named(refuse, key):
    refuse(**{key: None})
    with pytest.raises(ModelError, match=key):
        refuse(**{key: 30.0})


def test_a_scale_of_one_changes_nothing(refuse):
    refuse(logits_scaling=1.0, logit_scale=1)


def test_the_plan_refuses_a_student_and_a_teacher(desk, new_model):
    for role in ("student", "teacher"):
        model = new_model(f"{role}-hybrid", layer_types=["linear_attention"])
        with pytest.raises(ModelError, match=rf"models\.{role}\.id.*linear_attention"):
            desk.plan({f"models.{role}.id": str(model)})
