"""This file holds the divergences of generalised knowledge distillation, exact or over top-k cells with a tail.

Axes: N response positions, V vocabulary, K teacher ids, C cells of a distribution (V, or K + 1 with the tail last).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from miniverl.losses.loss import Loss


def gkd(
    student_logps_NC: Tensor, teacher_logps_NC: Tensor, weights_N: Tensor, *, divergence: str, jsd_beta: float
) -> Loss:
    """Divergence between two distributions at every position, as a weighted sum in nats.

    Both arguments are normalised log-probs over the same C cells; -inf is a cell without mass. Gradients flow into
    the student only through what it is given; the teacher is usually a constant. ``divergence`` is a key of
    ``DIVERGENCES``; 0 < ``jsd_beta`` < 1 is read by jsd alone. GKD: Agarwal et al. 2024, arXiv 2306.13649.
    """
    per_position_N = DIVERGENCES[divergence](student_logps_NC, teacher_logps_NC, jsd_beta)
    return Loss(total=(weights_N * per_position_N).sum())


def gkd_topk(
    student_logps_NV: Tensor,
    top_ids_NK: Tensor,
    teacher_logps_NC: Tensor,
    weights_N: Tensor,
    *,
    divergence: str,
    jsd_beta: float,
) -> Loss:
    """``gkd`` over the teacher's top-k ids and one cell for everything else: never above the exact divergence.

    ``teacher_logps_NC`` comes from ``cells_from_top``. Metrics: ``student_mass`` and ``teacher_mass``, the
    probability of the K ids.
    """
    student_logps_NC = with_tail(student_logps_NV, top_ids_NK)
    loss = gkd(student_logps_NC, teacher_logps_NC, weights_N, divergence=divergence, jsd_beta=jsd_beta)
    masses = {
        "student_mass": _mass_of_top(student_logps_NC, weights_N),
        "teacher_mass": _mass_of_top(teacher_logps_NC, weights_N),
    }
    return Loss(total=loss.total, metrics=masses)


def _mass_of_top(logps_NC: Tensor, weights_N: Tensor) -> Tensor:
    return (weights_N * logps_NC.detach()[:, :-1].exp().sum(-1)).sum()


def with_tail(logps_NV: Tensor, top_ids_NK: Tensor) -> Tensor:
    """[N, K + 1]: the log-probs of the K ids (distinct in a row), then the log of all mass outside them.

    The tail is a logsumexp over the other ids: 1 - sum(top) would cancel once the student is confident, and a floor
    would take its gradient away. -inf when K = V.
    """
    top_ids_NK = top_ids_NK.long()
    outside_NV = logps_NV.scatter(-1, top_ids_NK, -math.inf)
    empty_N1 = outside_NV.amax(-1, keepdim=True) == -math.inf  # logsumexp of nothing has no gradient
    tail_N1 = outside_NV.masked_fill(empty_N1, 0.0).logsumexp(-1, keepdim=True).masked_fill(empty_N1, -math.inf)
    return torch.cat([logps_NV.gather(-1, top_ids_NK), tail_N1], dim=-1)


def cells_from_top(top_logps_NK: Tensor, tail_N: Tensor) -> Tensor:
    """[N, K + 1]: the teacher's side of ``with_tail``, from the targets it sent."""
    return torch.cat([top_logps_NK, tail_N[:, None]], dim=-1)


def _kl(p_logps_NC: Tensor, q_logps_NC: Tensor) -> Tensor:
    """KL(p || q) at every position, [N]. Cells where p has no mass count nothing, in value and in gradient."""
    p_NC = p_logps_NC.exp()
    gap_NC = torch.where(p_NC > 0, p_logps_NC - q_logps_NC, 0.0)
    return (p_NC * gap_NC).sum(-1)


def _forward_kl(student_logps_NC: Tensor, teacher_logps_NC: Tensor, jsd_beta: float) -> Tensor:
    return _kl(teacher_logps_NC, student_logps_NC)


def _reverse_kl(student_logps_NC: Tensor, teacher_logps_NC: Tensor, jsd_beta: float) -> Tensor:
    return _kl(student_logps_NC, teacher_logps_NC)


def _jsd(student_logps_NC: Tensor, teacher_logps_NC: Tensor, jsd_beta: float) -> Tensor:
    empty_NC = (student_logps_NC == -math.inf) & (teacher_logps_NC == -math.inf)  # logaddexp has no gradient there
    mixture_NC = torch.logaddexp(
        teacher_logps_NC + math.log(jsd_beta),
        student_logps_NC.masked_fill(empty_NC, 0.0) + math.log1p(-jsd_beta),
    )
    return jsd_beta * _kl(teacher_logps_NC, mixture_NC) + (1.0 - jsd_beta) * _kl(student_logps_NC, mixture_NC)


DIVERGENCES: dict[str, Callable[[Tensor, Tensor, float], Tensor]] = {
    "forward_kl": _forward_kl,
    "reverse_kl": _reverse_kl,
    "jsd": _jsd,
}
"""forward_kl = KL(teacher || student); reverse_kl = KL(student || teacher); jsd = beta KL(teacher || M) +
(1 - beta) KL(student || M) with M = beta teacher + (1 - beta) student."""
