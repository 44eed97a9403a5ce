"""This file holds sampled_k1: the policy gradient of the reverse KL, from the sampled tokens alone."""

from __future__ import annotations

from torch import Tensor

from miniverl.losses.loss import Loss


def sampled_k1(
    logps_N: Tensor, teacher_logps_N: Tensor, weights_N: Tensor, *, is_weights_N: Tensor | None = None
) -> Loss:
    """Raises the log-prob of sampled tokens the teacher likes better than the student, by how much better.

    ``logps_N`` [N] are the student's log-probs of the sampled tokens (differentiable), ``teacher_logps_N`` the
    teacher's at the same temperature. ``is_weights_N`` (``truncated_is``) corrects for tokens drawn from another
    distribution; None: drawn from the student itself. The gain is a constant: on the student's own samples the
    expected gradient of ``total`` is that of KL(student || teacher), while differentiating the gain itself would
    give zero. k1 of Schulman 2020, "Approximating KL divergence", as a REINFORCE reward without discount.

    Metric ``kl``: sum of weight x (log p_student - log p_teacher), an estimate of the KL.
    """
    gain_N = (teacher_logps_N - logps_N).detach()
    push_N = gain_N if is_weights_N is None else gain_N * is_weights_N.detach()
    return Loss(total=-(push_N * logps_N * weights_N).sum(), metrics={"kl": -(gain_N * weights_N).sum()})
