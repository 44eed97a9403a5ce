"""This file holds the refusals at a journal's door: another run's file, or one that lost what it had recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from miniverl.contract.canonical import canonical_json
from miniverl.errors import RecordError
from miniverl.record import chain
from miniverl.record.manifest import FOLDER, manifests
from miniverl.record.reader import JournalReader

_ABSENT = "(not set)"


def refuse_another_run(
    journal: JournalReader, *, run_id: str, experiment: str, experiment_facts: Mapping[str, object]
) -> None:
    """Raises RecordError unless the journal was created for this run and experiment; names the fields that differ."""
    found = journal.meta()
    if found["run_id"] != run_id:
        raise RecordError(
            str(journal.database.path),
            value=found["run_id"],
            problem=f"this journal belongs to another run than {run_id!r}",
            fix="set another run.dir, or move the run directory back to where it was created",
        )
    if found["experiment"] != experiment:
        differences = _differences(found["experiment_facts"], experiment_facts)
        raise RecordError(
            str(journal.database.path),
            value=found["experiment"][:12],
            problem=f"this directory holds another experiment; {differences}",
            fix="put these settings back to continue it, or set another run.dir to start anew",
        )


def refuse_broken_chain(journal: JournalReader) -> None:
    """Raises RecordError naming the first group or step whose digests do not lead on from the one before."""
    head, heads = chain.START, []
    for position, (found, name, digest, recorded) in enumerate(
        journal.database.rows("SELECT position, id, digest, chain FROM groups ORDER BY position")
    ):
        head = chain.link(head, digest)
        if found != position or recorded != head:
            raise _damaged(journal, f"the chain breaks at group {name}")
        heads.append(head)
    for number, (step, rows, recorded) in enumerate(
        journal.database.rows("SELECT step, rows, chain_head FROM steps ORDER BY step"), start=1
    ):
        if step != number or not 0 < rows <= len(heads) or heads[rows - 1] != recorded:
            raise _damaged(journal, f"the groups of step {step} are not those it closed with")


def refuse_shorter_than_checkpoints(journal: JournalReader, run_dir: Path) -> None:
    """Raises RecordError when a checkpoint on disk was made while the journal held more groups, or other ones."""
    rows = journal.facts().rows
    for manifest in manifests(run_dir):
        if manifest.rows > rows:
            problem = f"holds {rows} groups, but checkpoint step-{manifest.step} was made when it held {manifest.rows}"
        elif manifest.rows and _chain_at(journal, manifest.rows) != manifest.chain_head:
            problem = f"holds other groups than when checkpoint step-{manifest.step} was made"
        else:
            continue
        raise RecordError(
            str(journal.database.path),
            problem=problem,
            fix=f"put the newest journal back with its -wal file, or take {FOLDER}/step-{manifest.step} away",
        )


def refuse_lost_journal(path: Path) -> None:
    """Raises RecordError when a run directory without a journal holds a checkpoint of recorded groups."""
    for manifest in manifests(path.parent):
        if manifest.rows:
            raise RecordError(
                str(path),
                problem=f"is missing, but checkpoint step-{manifest.step} was made when it held {manifest.rows} groups",
                fix=f"put the journal back with its -wal file, or take {FOLDER}/step-{manifest.step} away",
            )


def _chain_at(journal: JournalReader, rows: int) -> str:
    found = journal.database.row("SELECT chain FROM groups WHERE position = ?", (rows - 1,))
    return found[0] if found else ""


def _differences(recorded: Mapping[str, object], asked: Mapping[str, object]) -> str:
    now = json.loads(canonical_json(asked))
    names = sorted(name for name in recorded.keys() | now.keys() if recorded.get(name) != now.get(name))
    told = "; ".join(f"{name}: recorded {_short(recorded, name)}, now {_short(now, name)}" for name in names)
    return told or "no named field differs, but the way digests or seeds are derived does"


def _short(facts: Mapping[str, object], name: str) -> str:
    text = repr(facts[name]) if name in facts else _ABSENT
    return text if len(text) <= 80 else f"{text[:77]}..."


def _damaged(journal: JournalReader, problem: str) -> RecordError:
    return RecordError(
        str(journal.database.path), problem=f"is damaged: {problem}", fix="put an undamaged copy of the journal back"
    )
