"""This file holds the plans of the packaged tiny models, as the models room is asked to load them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from miniverl.data.packaged import resource
from miniverl.plan.plan import LoraPlan, ModelPlan

LORA = LoraPlan(r=8, lora_alpha=16, lora_dropout=0.0, target_modules="all-linear")


@pytest.fixture
def model_plan() -> Callable[..., ModelPlan]:
    def plan(name: str = "tiny-student", *, quantization: str = "none", lora: LoraPlan | None = LORA) -> ModelPlan:
        return ModelPlan(
            id=f"miniverl://{name}", path=str(resource(f"miniverl://{name}")), revision="r", tokenizer_digest="t",
            vocabulary=20, dtype="float32", quantization=quantization, lora=lora,
        )  # fmt: skip

    return plan
