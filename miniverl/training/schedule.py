"""This file holds the learning-rate schedule, a pure function of the step."""

from __future__ import annotations

import math

from miniverl.plan.plan import OptimPlan


def learning_rate(plan: OptimPlan, step: int) -> float:
    """Learning rate of step ``step`` (from 1). Warm-up is linear and reaches ``lr`` at its last step.

    After it: constant; linear to 0; or half a cosine to 0, over ``schedule_steps``.
    """
    if step <= plan.lr_warmup_steps:
        return plan.lr * step / plan.lr_warmup_steps
    left = max(plan.schedule_steps - plan.lr_warmup_steps, 1)
    share = min((step - plan.lr_warmup_steps - 1) / left, 1.0)
    return plan.lr * DECAYS[plan.lr_scheduler_type](share)


DECAYS = {
    "constant": lambda share: 1.0,
    "linear": lambda share: 1.0 - share,
    "cosine": lambda share: 0.5 * (1.0 + math.cos(math.pi * share)),
}
"""Factor by the share of the schedule that is over, 0..1."""
