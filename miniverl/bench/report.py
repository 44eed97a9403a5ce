"""This file holds the report of a benchmark: its aggregate as a page to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def page(found: Mapping[str, Any]) -> str:
    """Markdown; the same aggregate gives the same page."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    header, workload = found["header"], found["workload"]
    machine = header["machine"]
    yield f"# {workload['name']}"
    yield ""
    yield (
        f"Model `{header['model']}`, {workload.get('dtype', 'float32')}, {header['threads']} thread(s), "
        + (machine["gpu"] or f"{machine['cpus']} CPUs ({machine['processor']})")
        + f"; compiled decoding {'on' if header['compile_backend'] else 'off'}."
    )
    changes = " with uncommitted changes" if header["uncommitted_changes"] else ""
    yield f"Source {header['commit']}{changes}, package {header['package_sha256'][:12]}."
    yield "Versions: " + ", ".join(f"{name} {number}" for name, number in header["versions"].items() if number) + "."
    yield ""
    yield from _gates(found["gates"])
    yield from _cells(found["cells"])
    yield from _backends(found["backends"])
    yield "Raw files:"
    yield ""
    for backend, raw in sorted(header["raw"].items()):
        yield f"- {backend}: `{raw['file']}`, SHA-256 `{raw['sha256']}`"


def _gates(gates: list[Mapping[str, Any]]) -> Iterator[str]:
    yield "| gate | found | needed | |"
    yield "|---|---|---|---|"
    for gate in gates:
        verdict = "holds" if gate["passed"] else "**fails**" if gate["purpose"] == "required" else "not selected"
        yield f"| {gate['name']} | {_short(gate['found'])} | {_short(gate['needed'])} | {verdict} |"
    yield ""


def _cells(cells: list[Mapping[str, Any]]) -> Iterator[str]:
    """Tokens per second by backend, and every ratio to the backend after it."""
    backends = list(dict.fromkeys(name for cell in cells for name in cell["backends"]))
    pairs = [f"{fast}/{slow}" for fast in backends for slow in backends if fast == "hf_cached" and slow != fast]
    static = any(one["over_static"] for cell in cells for one in cell["backends"].values())
    titles = ["prompt", "response", "n", "sampling", *backends, *pairs, "first token (s)", "prefill (s)", "decode (s)"]
    titles += ["over static batches"] * static
    yield "Tokens per second; `*` is integrated over a few timed prefix lengths; – was not measured."
    yield ""
    yield f"| {' | '.join(titles)} |"
    yield "|" + "---|" * len(titles)
    for cell in cells:
        rates = [_rate(cell["backends"].get(name)) for name in backends]
        ratios = [_number(cell["ratios"].get(pair)) for pair in pairs]
        cached = cell["backends"].get("hf_cached", {})
        phases = [_number(cached.get(name), 3) for name in ("seconds_first_token", "seconds_prefill", "seconds_decode")]
        shape = [cell["prompt_tokens"], cell["response_tokens"], cell["samples"], cell["sampling"]]
        row = [*shape, *rates, *ratios, *phases, *([_number(cached.get("over_static"))] * static)]
        yield f"| {' | '.join(map(str, row))} |"
    yield ""


def _backends(backends: Mapping[str, Any]) -> Iterator[str]:
    for name, facts in sorted(backends.items()):
        yield f"## {name}"
        yield ""
        if facts["error"]:
            yield f"Did not start: {facts['error'].splitlines()[0]}"
            yield ""
            continue
        yield "| | |"
        yield "|---|---|"
        for label, value in (facts["phases"] or {}).items():
            yield f"| {label} | {_number(value, 3)} |"
        for label, value in facts.items():
            if label.startswith("seconds_start"):
                yield f"| {label} | {_number(value, 3)} |"
        yield f"| seconds per policy taken up | {_number(facts['refreshes']['seconds'], 3)} |"
        yield ""


def _rate(one: Mapping[str, Any] | None) -> str:
    if one is None or one["error"]:
        return "failed" if one else "–"
    return _number(one["tokens_per_second"], 1) + ("*" if one["integrated"] else "")


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _short(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_short(one)}" for name, one in value.items())
    if isinstance(value, float):
        return f"{value:.3g}"
    return "–" if value is None else str(value).splitlines()[0][:80] if str(value) else "none"
