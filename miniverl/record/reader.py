"""This file holds JournalReader: what a journal answers, to its writer and to those who only look."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from miniverl.contract.group import Group
from miniverl.contract.parcel import KEPT
from miniverl.contract.report import Checkpoint, Evaluation, KeptGroup, StepReport
from miniverl.errors import RecordError
from miniverl.record import chain, payload, reports
from miniverl.record.database import Database
from miniverl.record.facts import Facts

FILE = "journal.sqlite"
"""The journal's name inside a run directory."""

PROBE = "conformance"
"""What a probe found, among the notes of the policy version it found it for."""


class JournalReader:
    """A view of a journal that writes nothing and takes neither lock nor lease, also while a run writes."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @staticmethod
    def read_only(run_dir: str | Path) -> JournalReader:
        """The journal in a run directory. Raises RecordError when there is none, or none of ours."""
        return JournalReader(Database.open_to_read(Path(run_dir) / FILE))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Lets the file go."""
        self.database.close()

    @contextmanager
    def one_view(self) -> Iterator[None]:
        """Everything read inside belongs to one moment, whatever a writer does meanwhile."""
        with self.database.transaction("DEFERRED"):
            yield

    def meta(self) -> Mapping[str, Any]:
        """run_id, experiment and experiment_facts, as the journal was created with."""
        found: dict[str, Any] = dict(self.database.rows("SELECT name, value FROM meta"))
        with self._readable("meta"):
            facts = dict(json.loads(found["experiment_facts"]))
            return {"run_id": found["run_id"], "experiment": found["experiment"], "experiment_facts": facts}

    def find(self, step: int, tensor_digest: str) -> tuple[Group, ...]:
        """Groups recorded for a step under these trainable tensors, in cursor order; each verified by its digest.

        Raises RecordError naming the group when a payload is not what was recorded, or when a group of the step was
        sampled by other tensors.
        """
        rows = self.database.rows(
            "SELECT position, id, version, tensor_digest, digest, payload, shard FROM groups WHERE step = ?"
            " ORDER BY position",
            (step,),
        )
        for _, name, _, found, *_ in rows:
            if found != tensor_digest:
                raise RecordError(
                    f"group {name}",
                    value=found[:12],
                    problem=f"recorded in step {step} under other trainable tensors than {tensor_digest[:12]}",
                    fix="continue with the software and machine that recorded it, or start in another run.dir",
                )
        return tuple(self._group(row) for row in rows)

    def kept(self, step: int) -> tuple[KeptGroup, ...]:
        """Kept groups of the step in cursor order."""
        rows = self.database.rows(
            "SELECT id, digest FROM groups WHERE step = ? AND fate = ? ORDER BY position", (step, KEPT)
        )
        return tuple(KeptGroup(id=name, digest=digest) for name, digest in rows)

    def facts(self) -> Facts:
        """Groups, chain head and lease as of now; the cursor as of the last closed step."""
        found = self.database.row(
            "SELECT (SELECT position + 1 FROM groups ORDER BY position DESC LIMIT 1),"
            " (SELECT chain FROM groups ORDER BY position DESC LIMIT 1),"
            " (SELECT cursor FROM steps ORDER BY step DESC LIMIT 1), number FROM lease"
        )
        with self._readable("lease"):
            if found is None:
                raise LookupError("it is empty")
        rows, head, cursor, lease = found
        return Facts(rows=rows or 0, chain_head=head or chain.START, cursor=cursor or 0, lease=lease)

    def facts_at(self, step: int) -> Facts:
        """The facts as they were when ``step`` closed; 0 is before training. Equal runs give equal facts, lease apart.

        Raises RecordError when the step is not closed.
        """
        lease = self.facts().lease
        if step == 0:
            return Facts(rows=0, chain_head=chain.START, cursor=0, lease=lease)
        found = self.database.row("SELECT rows, chain_head, cursor FROM steps WHERE step = ?", (step,))
        if found is None:
            raise RecordError(
                str(self.database.path),
                value=step,
                problem=f"this step is not closed; {self.last_step()} steps are",
                fix="name a closed step",
            )
        rows, head, cursor = found
        return Facts(rows=rows, chain_head=head, cursor=cursor, lease=lease, probes=self._first_probes(below=step))

    def _first_probes(self, *, below: int) -> tuple[Mapping[str, Any], ...]:
        """Of versions 0 and 1, as far as below a step: what an untouched run has probed when that step closes.

        Of several lives the first is heard, so that a checkpoint does not depend on how often the run was continued.
        """
        rows = self.database.rows("SELECT step, facts FROM notes WHERE step < ? ORDER BY lease", (min(below, 2),))
        first: dict[int, Mapping[str, Any]] = {}
        with self._readable("notes"):
            for version, text in rows:
                if (found := json.loads(text).get(PROBE)) is not None:
                    first.setdefault(version, found)
        return tuple(first[version] for version in sorted(first))

    def last_step(self) -> int:
        """Steps closed."""
        found = self.database.row("SELECT max(step) FROM steps")
        return (found and found[0]) or 0

    def reports(self) -> tuple[StepReport, ...]:
        """Of all closed steps, in order."""
        rows = self.database.rows("SELECT report FROM steps ORDER BY step")
        with self._readable("steps"):
            return tuple(reports.from_text(text) for (text,) in rows)

    def evaluations(self) -> tuple[Evaluation, ...]:
        """In order of step, then subject."""
        rows = self.database.rows("SELECT result FROM evaluations ORDER BY step, subject, data_digest")
        with self._readable("evaluations"):
            return tuple(Evaluation(**json.loads(text)) for (text,) in rows)

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """Newest first."""
        rows = self.database.rows(
            "SELECT step, folder, manifest_digest, scheduled FROM checkpoints WHERE NOT pruned ORDER BY step DESC"
        )
        return tuple(
            Checkpoint(step=step, folder=folder, manifest_digest=digest, scheduled=bool(scheduled))
            for step, folder, digest, scheduled in rows
        )

    def holds_nothing(self) -> bool:
        """Whether no group, step, evaluation or checkpoint was ever recorded: the run has not begun."""
        tables = ("groups", "steps", "evaluations", "checkpoints")
        return not any(self.database.row(f"SELECT 1 FROM {table} LIMIT 1") for table in tables)

    def notes(self) -> tuple[tuple[int, int, Mapping[str, Any]], ...]:
        """(lease, step, facts) of the side table, in order: what may differ between equal runs."""
        rows = self.database.rows("SELECT lease, step, facts FROM notes ORDER BY lease, step")
        with self._readable("notes"):
            return tuple((lease, step, json.loads(text)) for lease, step, text in rows)

    @contextmanager
    def _readable(self, table: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, LookupError) as error:
            raise RecordError(
                str(self.database.path),
                problem=f"is damaged: its table {table} cannot be read ({error})",
                fix="put an undamaged copy of the journal back",
            ) from error

    def _group(self, row: tuple) -> Group:
        position, name, version, _, digest, data, shard = row
        if data is None:
            raise RecordError(
                f"group {name}", value=shard, problem="was sealed into a shard, which this version cannot read",
                fix="continue from a later checkpoint",
            )  # fmt: skip
        group = payload.from_bytes(data, digest=digest, group_id=name)
        if (group.cursor, group.id, group.policy_version) != (position, name, version):
            raise RecordError(
                f"group {name}", value=group.id, problem="the journal's row and its payload name different groups",
                fix="put an undamaged copy of the journal back",
            )  # fmt: skip
        return group
