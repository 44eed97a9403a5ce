"""This file holds the slow twin of sampled k1: plain loops in float64, and the exact gradient it estimates."""

from __future__ import annotations

import math

import numpy as np


def sampled_k1(
    logps: np.ndarray, teacher_logps: np.ndarray, weights: np.ndarray, is_weights: np.ndarray
) -> tuple[float, float, np.ndarray]:
    """Total, the estimate of the KL, and the gradient of the total by the sampled log-probs [N]."""
    total = estimate = 0.0
    gradient = np.zeros(len(logps))
    for n in range(len(logps)):
        gain = float(teacher_logps[n]) - float(logps[n])
        push = gain * float(is_weights[n]) * float(weights[n])
        total -= push * float(logps[n])
        estimate -= gain * float(weights[n])
        gradient[n] = -push
    return total, estimate, gradient


def reverse_kl_gradient(student_logits: np.ndarray, teacher_logits: np.ndarray) -> np.ndarray:
    """Gradient of KL(student || teacher) by the student's logits [V]: p_j (log p_j - log t_j - KL)."""
    p, t = _softmax(student_logits), _softmax(teacher_logits)
    divergence = math.fsum(a * math.log(a / b) for a, b in zip(p, t, strict=True))
    return np.array([a * (math.log(a / b) - divergence) for a, b in zip(p, t, strict=True)])


def _softmax(logits: np.ndarray) -> list[float]:
    raised = [math.exp(float(z)) for z in logits]
    return [r / math.fsum(raised) for r in raised]
