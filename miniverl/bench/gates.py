"""This file holds the gates of a benchmark: what must hold, what was found, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from miniverl.bench.workload import Gate, Workload

GROWTH = 1.02
"""Peak memory of the last policy over that of the second: more is growth, not noise."""


def evaluate(
    workload: Workload, cells: Sequence[Mapping[str, Any]], backends: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Every gate with its finding. What was not measured does not pass."""
    found = [_ratio(gate, cells, backends) for gate in workload.gates]
    for backend, facts in backends.items():
        found += _of_backend(workload, backend, cells, facts)
    return found


def failed(gates: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Gates whose failing is a failure."""
    return [gate for gate in gates if not gate["passed"] and gate["purpose"] == "required"]


def _gate(name: str, passed: bool, found: object, needed: object, purpose: str = "required") -> dict[str, Any]:
    return {"name": name, "passed": passed, "found": found, "needed": needed, "purpose": purpose}


def _ratio(gate: Gate, cells: Sequence[Mapping[str, Any]], backends: Mapping[str, Any]) -> dict[str, Any]:
    looked_at = [cell for cell in cells if all(cell[key] == value for key, value in gate.where.items())]
    if gate.slower == "static":
        ratios = [cell["backends"].get(gate.faster, {}).get("over_static") for cell in looked_at]
    else:
        ratios = [cell["ratios"].get(f"{gate.faster}/{gate.slower}") for cell in looked_at]
    known = [ratio for ratio in ratios if ratio is not None]
    least = min(known) if len(known) == len(ratios) and known else None
    where = ", ".join(f"{key} {value}" for key, value in gate.where.items())
    name = f"{gate.faster} : {gate.slower}" + (f" where {where}" if where else " in every cell")
    return _gate(name, least is not None and least >= gate.at_least, least, gate.at_least, gate.purpose)


def _of_backend(
    workload: Workload, backend: str, cells: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    if facts["error"] is not None:
        yield _gate(f"{backend} starts", False, facts["error"], None)
        return
    mine = [(cell, cell["backends"][backend]) for cell in cells if backend in cell["backends"]]
    errors = [one["error"] for _, one in mine if one["error"]]
    yield _gate(f"{backend}: every cell was computed", not errors and len(mine) == len(cells), errors, [])
    measured = [(cell, one) for cell, one in mine if not one["integrated"]]
    if measured:
        yield from _honest(workload, backend, measured)
    refreshes = facts["refreshes"]
    counts = [refreshes["identities"], refreshes["outputs_that_differ_from_the_last"] + 1]
    yield _gate(f"{backend}: policies, each answering otherwise than the last", counts == [workload.refreshes] * 2,
                counts, [workload.refreshes] * 2)  # fmt: skip
    yield _memory(workload, backend, refreshes["peak_bytes"])


def _honest(
    workload: Workload, backend: str, measured: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """The checks that a benchmark measured what it says."""
    random = [(cell, one) for cell, one in measured if workload.sampling[cell["sampling"]].temperature > 0]
    repeated = [str(cell) for cell, one in measured if not one["repeats_equal"]]
    yield _gate(f"{backend}: equal seeds give equal tokens", not repeated, repeated, [])
    # Two of four samples may be equal by chance where responses are short; all of them only by mistake.
    alike = [one["distinct"] for cell, one in random if (one["distinct"] or 0) < min(cell["samples"], 2)]
    yield _gate(f"{backend}: the samples of a prompt differ", not alike, alike, [])
    same = [cell["sampling"] for cell, one in random if not one["other_seed_differs"]]
    yield _gate(f"{backend}: other seeds give other tokens", not same, same, [])
    yield _gate(f"{backend}: stochastic tokens differ from greedy ones", *_unlike_greedy(measured), True)
    known = [one["logp_difference"] for _, one in measured if one["logp_difference"] is not None]
    worst = max(known) if known else None
    yield _gate(f"{backend}: log-probs of plain forward passes", worst is not None and worst <= workload.logp_limit,
                worst, workload.logp_limit)  # fmt: skip


def _unlike_greedy(measured: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> tuple[bool, bool | None]:
    """Within each shape the digests of all ways of sampling are different."""
    by_shape: dict[tuple[Any, ...], list[str | None]] = {}
    for cell, one in measured:
        shape = (cell["prompt_tokens"], cell["response_tokens"], cell["samples"])
        by_shape.setdefault(shape, []).append(one["digest"])
    if all(len(digests) == 1 for digests in by_shape.values()):
        return True, None  # one way of sampling alone
    differ = all(len(set(digests)) == len(digests) and None not in digests for digests in by_shape.values())
    return differ, differ


def _memory(workload: Workload, backend: str, peaks: Sequence[float | None]) -> dict[str, Any]:
    known = [peak for peak in peaks if peak is not None]
    if len(known) < len(peaks) or len(known) < 2:
        return _gate(f"{backend}: memory", False, None, "measured")
    grown, limit = known[-1] / known[1], workload.peak_gib
    within = limit is None or max(known) <= limit * 2**30
    return _gate(f"{backend}: memory does not grow with policies", grown <= GROWTH and within,
                 {"growth": grown, "peak_gib": max(known) / 2**30}, {"growth": GROWTH, "peak_gib": limit})  # fmt: skip
