import dataclasses

import pytest

from miniverl.plan.plan import OptimPlan
from miniverl.training.schedule import learning_rate

PLAN = OptimPlan(
    lr=2.0, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, clip_grad=1.0, lr_scheduler_type="constant",
    lr_warmup_steps=4, schedule_steps=14,
)  # fmt: skip


def test_warm_up_rises_in_equal_steps_to_the_rate():
    assert [learning_rate(PLAN, step) for step in (1, 2, 3, 4, 5)] == [0.5, 1.0, 1.5, 2.0, 2.0]


@pytest.mark.parametrize(("kind", "half", "end"), [("constant", 2.0, 2.0), ("linear", 1.0, 0.0), ("cosine", 1.0, 0.0)])
def test_after_warm_up_the_rate_decays_over_what_is_left(kind, half, end):
    plan = dataclasses.replace(PLAN, lr_scheduler_type=kind)
    assert learning_rate(plan, 5) == 2.0
    assert learning_rate(plan, 10) == pytest.approx(half)
    assert learning_rate(plan, 15) == pytest.approx(end)
    assert learning_rate(plan, 99) == pytest.approx(end)
