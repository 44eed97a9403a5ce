"""This file holds Objective: the recipe's loss, applied to a chunk of response positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from miniverl.contract.targets import TeacherTargets
from miniverl.losses.gkd import cells_from_top, gkd, gkd_topk
from miniverl.losses.importance import truncated_is
from miniverl.losses.loss import Loss
from miniverl.losses.sampled_k1 import sampled_k1
from miniverl.metrics import declared
from miniverl.plan.plan import ObjectivePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """A chunk of C response positions as a loss sees them."""

    logps_CV: torch.Tensor
    """float32 [C, V]; the student's log-probs, with gradient."""
    ids_C: torch.Tensor
    """int64 [C]; the sampled tokens."""
    weights_C: torch.Tensor
    """float32 [C]; from the reduction."""
    behaviour_C: torch.Tensor | None
    """float32 [C]; recorded log-probs of the distribution the tokens were drawn from."""
    where: slice
    """Which of the parcel's N positions these are: selects the teacher's rows."""

    @property
    def logps_C(self) -> torch.Tensor:
        """float32 [C]; log-probs of the sampled tokens."""
        return self.logps_CV.gather(1, self.ids_C[:, None])[:, 0]


class Objective:
    """Direct GKD, or sampled k1. A variant is a row of ``LOSSES``, not a branch in the trainer."""

    def __init__(self, plan: ObjectivePlan) -> None:
        self.plan = plan
        self._loss = LOSSES[plan.name]

    def loss(self, positions: Positions, targets: TeacherTargets) -> Loss:
        """Sums over the chunk: ``total`` carries the gradient, ``metrics`` go by their declared names."""
        return self._loss(self.plan, positions, targets)


def _gkd(plan: ObjectivePlan, positions: Positions, targets: TeacherTargets) -> Loss:
    if targets.exact is not None:
        teacher = _rows(targets.exact, positions)
        loss = gkd(positions.logps_CV, teacher, positions.weights_C, divergence=plan.divergence, jsd_beta=plan.jsd_beta)
        return Loss(total=loss.total, metrics={declared.DISTILLATION_LOSS.name: loss.total})
    assert targets.top_ids is not None and targets.top_logps is not None and targets.tail is not None
    teacher = cells_from_top(_rows(targets.top_logps, positions), _rows(targets.tail, positions))
    loss = gkd_topk(
        positions.logps_CV, _rows(targets.top_ids, positions), teacher, positions.weights_C,
        divergence=plan.divergence, jsd_beta=plan.jsd_beta,
    )  # fmt: skip
    return Loss(
        total=loss.total,
        metrics={
            declared.DISTILLATION_LOSS.name: loss.total,
            declared.STUDENT_MASS.name: loss.metrics["student_mass"],
            declared.TEACHER_MASS.name: loss.metrics["teacher_mass"],
        },
    )


def _sampled_k1(plan: ObjectivePlan, positions: Positions, targets: TeacherTargets) -> Loss:
    assert targets.sampled is not None
    own = positions.logps_C
    is_weights = None
    if plan.rollout_is is not None and positions.behaviour_C is not None:
        is_weights = truncated_is(own, positions.behaviour_C, cap=plan.rollout_is_threshold)
    loss = sampled_k1(own, _rows(targets.sampled, positions), positions.weights_C, is_weights_N=is_weights)
    return Loss(
        total=loss.total,
        metrics={declared.DISTILLATION_LOSS.name: loss.metrics["kl"], declared.PG_LOSS.name: loss.total},
    )


def _rows(column: np.ndarray, positions: Positions) -> torch.Tensor:
    """The chunk's rows of a target column, on the student's device; a copy, for what came through Ray is read-only."""
    return torch.tensor(column[positions.where], device=positions.ids_C.device)


LOSSES = {"gkd": _gkd, "sampled_k1": _sampled_k1}
