"""This file holds the evidence of a benchmark: raw files, one aggregate bound to them, and the check of both."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from miniverl.bench.gates import evaluate
from miniverl.bench.workload import workload_from
from miniverl.errors import RecordError
from miniverl.record.files import write_atomically

SCHEMA = 1
LIBRARIES = ("miniverl-ray", "torch", "transformers", "peft", "numpy", "triton", "bitsandbytes")
STEPS = 100
"""Of the run whose share of start-up is shown."""


def write(out: Path, workload: Mapping[str, Any], raws: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """Raw files beside ``out``, then ``out`` itself, the aggregate. Returns it."""
    named = {}
    for backend, raw in raws.items():
        path = out.with_name(f"{out.stem}.{backend}.raw.json")
        write_atomically(path, _text(raw))
        named[backend] = {"file": path.name, "sha256": _sha256(path)}
    made = aggregate(workload, raws, {**header, "raw": named})
    write_atomically(out, _text(made))
    return made


def check(path: Path) -> dict[str, Any]:
    """The aggregate, made again from its raw files and equal byte for byte. Raises RecordError naming what differs."""
    try:
        text = path.read_bytes()
        found = json.loads(text)
        header, named = found["header"], found["header"]["raw"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(str(path), problem=f"is no aggregate of a benchmark ({type(error).__name__})",
                          fix="name the file that miniverl bench rollout --out wrote") from None  # fmt: skip
    raws = {}
    for backend, raw in named.items():
        file = path.with_name(Path(raw["file"]).name)
        if not file.is_file() or _sha256(file) != raw["sha256"]:
            raise RecordError(str(file), problem="is missing or is not the file the aggregate was made from",
                              fix="restore it, or measure again")  # fmt: skip
        raws[backend] = json.loads(file.read_bytes())
    if _text(aggregate(found["workload"], raws, header)) != text:
        raise RecordError(str(path), problem="is not what its raw files add up to", fix="measure again")
    return found


def aggregate(workload: Mapping[str, Any], raws: Mapping[str, Any], header: Mapping[str, Any]) -> dict[str, Any]:
    """Medians, ratios and gates. A pure function of its arguments."""
    known = workload_from(workload, source="aggregate")
    raws = dict(sorted(raws.items()))
    cells = [_cell(cell.model_dump(), {name: raw["cells"][place] for name, raw in raws.items() if raw["cells"]})
             for place, cell in enumerate(known.cells())]  # fmt: skip
    backends = {name: _backend(raw) for name, raw in raws.items()}
    return {
        "schema": SCHEMA, "header": dict(header), "workload": dict(workload), "cells": cells, "backends": backends,
        "gates": evaluate(known, cells, backends),
    }  # fmt: skip


def _cell(cell: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    backends = {name: _median(one) for name, one in found.items()}
    rates = {name: one["tokens_per_second"] for name, one in backends.items() if one["tokens_per_second"]}
    ratios = {f"{fast}/{slow}": rates[fast] / rates[slow] for fast in rates for slow in rates if fast != slow}
    return {**cell, "backends": backends, "ratios": ratios}


def _median(found: Mapping[str, Any]) -> dict[str, Any]:
    """Of one backend in one cell; what it did not measure is null."""
    done = [one for one in found["repetitions"] if "seconds" in one]
    errors = [one["error"] for one in found["repetitions"] if "error" in one]

    def median(name: str) -> float | None:
        values = [one[name] for one in done if one.get(name) is not None]
        return statistics.median(values) if values else None

    seconds, digests = median("seconds"), {one["digest"] for one in done if "digest" in one}
    static = [one["seconds"] for one in found.get("static", ())]
    return {
        "error": errors[0] if errors else None,
        "integrated": any("integrated_over" in one for one in done),
        "seconds": seconds,
        "tokens": done[0]["tokens"] if done else None,
        "tokens_per_second": done[0]["tokens"] / seconds if done and seconds else None,
        **{name: median(name) for name in ("seconds_prefill", "seconds_decode", "seconds_first_token")},
        "digest": digests.pop() if len(digests) == 1 else None,
        "repeats_equal": bool(done) and len({one.get("digest") for one in done}) == 1,
        "distinct": min((one["distinct"] for one in done if "distinct" in one), default=None),
        "other_seed_differs": _differs(done, found.get("other_seed")),
        "logp_difference": found.get("logp_difference"),
        "over_static": statistics.median(static) / seconds if static and seconds else None,
    }


def _differs(done: Sequence[Mapping[str, Any]], other: Mapping[str, Any] | None) -> bool | None:
    if other is None or "digest" not in other or not done or "digest" not in done[0]:
        return None
    return bool(done[0]["digest"] != other["digest"])


def _backend(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Of a backend in all cells: start-up, its share of a run, and what eight policies did to it."""
    phases = raw.get("phases")
    refreshes = raw.get("refreshes") or []
    changes = sum(one["digest"] != following["digest"] for one, following in pairwise(refreshes))
    start = (
        sum(phases[name] or 0.0 for name in ("seconds_construction", "seconds_cold_start", "seconds_compile"))
        if phases
        else None
    )
    return {
        "error": raw["error"],
        "phases": phases,
        "seconds_start": start,
        f"seconds_start_per_step_of_{STEPS}": None if start is None else start / STEPS,
        "refreshes": {
            "count": len(refreshes),
            "identities": len({one["identity"] for one in refreshes}),
            "outputs_that_differ_from_the_last": changes,
            "seconds": statistics.median(one["seconds"] for one in refreshes) if refreshes else None,
            "peak_bytes": [one["peak_bytes"] for one in refreshes],
        },
    }  # fmt: skip


def header(*, threads: int, model: str, revision: str, compile_backend: bool) -> dict[str, Any]:
    """What the figures belong to: source, versions, machine, model."""
    root = Path(__file__).parents[2]
    return {
        "commit": _git(root, "rev-parse", "HEAD"),
        "uncommitted_changes": bool(_git(root, "status", "--porcelain", "--untracked-files=no")),
        "package_sha256": _package_digest(root),
        "versions": {name: _version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "machine": {"system": platform.system(), "architecture": platform.machine(), "processor": _processor(),
                    "cpus": len(os.sched_getaffinity(0)), "gpu": _gpu()},
        "threads": threads,
        "model": model,
        "revision": revision,
        "compile_backend": compile_backend,
    }  # fmt: skip


def _gpu() -> str | None:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)


def _git(root: Path, *words: str) -> str | None:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def _package_digest(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted((root / "miniverl").rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _text(tree: object) -> bytes:
    return json.dumps(tree, indent=1, sort_keys=True, allow_nan=False).encode() + b"\n"
