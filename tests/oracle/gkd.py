"""This file holds the slow twin of the GKD divergences: plain loops in float64, gradients in closed form."""

from __future__ import annotations

import math

import numpy as np


def softmax(logits: np.ndarray) -> list[float]:
    top = max(float(z) for z in logits)
    raised = [math.exp(float(z) - top) for z in logits]
    return [r / math.fsum(raised) for r in raised]


def cells_of(vocabulary: int, top_ids: np.ndarray | None) -> list[int]:
    """Cell of every id: its own when exact; else its place among ``top_ids``, everything else in the last one."""
    if top_ids is None:
        return list(range(vocabulary))
    places = {int(token): place for place, token in enumerate(top_ids)}
    return [places.get(token, len(places)) for token in range(vocabulary)]


def masses(probs: list[float], cells: list[int], count: int) -> list[float]:
    return [math.fsum(p for p, cell in zip(probs, cells, strict=True) if cell == wanted) for wanted in range(count)]


def _kl(p: list[float], q: list[float]) -> float:
    return math.fsum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)


def value(divergence: str, student: list[float], teacher: list[float], beta: float) -> float:
    if divergence == "forward_kl":
        return _kl(teacher, student)
    if divergence == "reverse_kl":
        return _kl(student, teacher)
    mixture = [beta * t + (1 - beta) * s for s, t in zip(student, teacher, strict=True)]
    return beta * _kl(teacher, mixture) + (1 - beta) * _kl(student, mixture)


def slope(divergence: str, s: float, t: float, beta: float) -> float:
    """Derivative by the student's mass of one cell, up to a constant over cells (which a softmax removes)."""
    if divergence == "forward_kl":
        return -t / s
    if divergence == "reverse_kl":
        return math.log(s / t)
    return (1 - beta) * math.log(s / (beta * t + (1 - beta) * s))


def gkd(
    student_logits: np.ndarray, teacher_logits: np.ndarray, weights: np.ndarray, *, divergence: str, beta: float,
    top_ids: np.ndarray | None = None,
) -> tuple[float, np.ndarray]:  # fmt: skip
    """Weighted sum over positions, and its gradient by the student's logits [N, V]."""
    total, gradient = 0.0, np.zeros_like(student_logits)
    for n in range(len(student_logits)):
        student, teacher = softmax(student_logits[n]), softmax(teacher_logits[n])
        cells = cells_of(len(student), None if top_ids is None else top_ids[n])
        count = max(cells) + 1
        s_mass, t_mass = masses(student, cells, count), masses(teacher, cells, count)
        total += float(weights[n]) * value(divergence, s_mass, t_mass, beta)
        slopes = [slope(divergence, s, t, beta) for s, t in zip(s_mass, t_mass, strict=True)]
        mean = math.fsum(s * slopes[cell] for s, cell in zip(student, cells, strict=True))
        for j, cell in enumerate(cells):
            gradient[n, j] = float(weights[n]) * student[j] * (slopes[cell] - mean)
    return total, gradient
