"""This file holds the slow twin of the mismatch figures: one token at a time, in plain Python."""

from math import exp, floor, fsum


def mismatch(own: list[float], theirs: list[float]) -> dict[str, float]:
    distances, estimates, probabilities = [], [], []
    for ours, other in zip(own, theirs, strict=True):
        ratio = exp(ours - other)
        distances.append(abs(ours - other))
        estimates.append((ratio - 1.0) - (ours - other))
        probabilities.append(abs(exp(ours) - exp(other)))
    count = len(distances)
    ranked = sorted(distances)
    place = 0.99 * (count - 1)
    below = floor(place)
    above = min(below + 1, count - 1)
    return {
        "tokens": count,
        "max": ranked[-1],
        "mean": fsum(distances) / count,
        "p99": ranked[below] + (place - below) * (ranked[above] - ranked[below]),
        "k3": fsum(estimates) / count,
        "probability": fsum(probabilities) / count,
    }
