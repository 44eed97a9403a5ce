"""This file holds the inspection of a run: what its directory tells, also while it is being written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from miniverl.contract.canonical import json_digest
from miniverl.contract.report import Evaluation, StepReport
from miniverl.record.export import exported
from miniverl.record.finite import finite
from miniverl.record.lock import holder_lives
from miniverl.record.reader import PROBE, JournalReader
from miniverl.record.rundir import RunDirectory

RUNNING, FINISHED, INTERRUPTED = "running", "finished", "interrupted"
"""States: a living process of this host writes here; every step done and the result exported; neither."""

Json = dict[str, Any]


def inspect_run(run_dir: str | Path) -> Json:
    """Everything the run directory tells, as JSON. Takes no lock and writes nothing.

    Raises RecordError when there is no run at ``run_dir``, or its journal is not one of ours.
    """
    directory = RunDirectory.existing(run_dir)
    plan = directory.read_plan()
    with JournalReader.read_only(directory.root) as journal, journal.one_view():
        meta, facts, reports = journal.meta(), journal.facts(), journal.reports()
        total = plan.get("schedule", {}).get("total_training_steps")
        return {
            "name": plan.get("name", directory.root.name),
            "run_id": meta["run_id"],
            "run_dir": str(directory.root),
            "state": _state(directory, reports, total=total),
            "digests": {
                "experiment": meta["experiment"],
                "execution": json_digest(plan["execution_facts"]) if "execution_facts" in plan else None,
            },
            "steps": {"done": len(reports), "total": total},
            "cursor": facts.cursor,
            "rows": facts.rows,
            "chain_head": facts.chain_head,
            "tensor_digest": reports[-1].tensor_digest if reports else None,
            "updates": reports[-1].updates if reports else 0,
            "metrics": dict(reports[-1].metrics) if reports else {},
            "evaluation": _evaluation(journal.evaluations()),
            "conformance": [facts[PROBE] for _, _, facts in journal.notes() if PROBE in facts],
            "actors": _actors(journal.notes()),
            "checkpoints": [
                {"step": one.step, "folder": one.folder, "manifest_digest": one.manifest_digest}
                for one in journal.checkpoints()
            ],
        }


def as_json(facts: Json) -> str:
    """The same as JSON text. A number that is not finite is written by its name, as in plan.json: "nan", "inf"."""
    return json.dumps(finite(facts), indent=2, sort_keys=True, allow_nan=False)


def render(facts: Json) -> list[str]:
    """The same as lines of plain text."""
    steps, total = facts["steps"]["done"], facts["steps"]["total"]
    lines = [
        f"{facts['name']} ({facts['run_id']}): {facts['state']}",
        f"directory    {facts['run_dir']}",
        f"experiment   {facts['digests']['experiment'][:12]}",
        f"steps        {steps} of {'?' if total is None else total}, {facts['updates']} optimizer updates",
        f"journal      {facts['rows']} groups, {facts['cursor']} prompts taken, chain {facts['chain_head'][:12]}",
        f"checkpoints  {', '.join(one['folder'] for one in facts['checkpoints']) or 'none'}",
    ]
    lines += [
        f"accuracy     {subject.replace('_', ' '):<15} {found['accuracy']:7.2%} of {found['n']}"
        for subject, found in facts["evaluation"].items()
    ]
    lines += [_conformance(found) for found in facts["conformance"]]
    lines += [
        f"actor        {role:<15} {found['busy_seconds']:9.1f} s busy, {found['calls']} calls,"
        f" {found['peak_rss'] / 2**20:,.0f} MiB at most"
        for role, found in facts["actors"].items()
    ]
    return lines + [f"metric       {name} = {value:.6g}" for name, value in sorted(facts["metrics"].items())]


def _conformance(found: Json) -> str:
    sampled, greedy = found["sampled"]["engine"], found["greedy"]
    return (
        f"conformance  version {found['version']}: {found['outcome']}, {sampled['tokens']} tokens, log-probs differ by"
        f" {sampled['max']:.2g} at most, {sampled['mean']:.2g} on average (own noise"
        f" {found['sampled']['floor']['mean']:.2g}), k3 {sampled['k3']:.2g}, probabilities by"
        f" {sampled['probability']:.2g}; {greedy['unlikeliest']} of {greedy['engine']['tokens']} greedy tokens differ"
    )


def _state(directory: RunDirectory, reports: Sequence[StepReport], *, total: int | None) -> str:
    last = (reports[-1].step, reports[-1].tensor_digest) if reports else None
    if total is not None and last is not None and last[0] >= total and exported(directory.final) == last:
        return FINISHED
    return RUNNING if holder_lives(directory.lock) else INTERRUPTED


def _evaluation(evaluations: Iterable[Evaluation]) -> Json:
    """Before is the student at step 0, after its latest evaluation beyond; only what was measured is named."""
    found: Json = {}
    for one in evaluations:  # in order of step
        name = one.subject if one.subject != "student" else "student_after" if one.step else "student_before"
        found[name] = {
            "accuracy": one.accuracy, "n": one.n, "step": one.step,
            "truncated": one.truncated, "mean_length": one.mean_length,
        }  # fmt: skip
    return {name: found[name] for name in ("teacher", "student_before", "student_after") if name in found}


def _actors(notes: Iterable[tuple[int, int, Mapping[str, Any]]]) -> Json:
    """By role. A role counts from the start of its process, so its last note of each life is summed over the lives."""
    last: dict[tuple[str, int], Mapping[str, Any]] = {}
    for lease, _, facts in notes:  # in order of step within a life
        last |= {(role, lease): counters for role, counters in facts.get("actors", {}).items()}
    roles = {role: [one for (name, _), one in last.items() if name == role] for role in sorted({r for r, _ in last})}
    return {
        role: {
            "busy_seconds": sum(float(one.get("busy_seconds", 0.0)) for one in lives),
            "calls": sum(int(one.get("calls", 0)) for one in lives),
            "peak_rss": max(int(one.get("peak_rss", 0)) for one in lives),
        }
        for role, lives in roles.items()
    }
