"""This file holds Journal: the one writer of a run's record. What it does not name does not exist."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from miniverl.contract.canonical import canonical_json
from miniverl.contract.group import Group
from miniverl.contract.parcel import Parcel
from miniverl.contract.report import Checkpoint, Evaluation, StepReport
from miniverl.errors import RecordError, TrainingError
from miniverl.record import chain, lease, payload, reports
from miniverl.record.database import Database
from miniverl.record.facts import Facts
from miniverl.record.files import named_errors
from miniverl.record.identity import (
    refuse_another_run,
    refuse_broken_chain,
    refuse_lost_journal,
    refuse_shorter_than_checkpoints,
)
from miniverl.record.lock import Lock
from miniverl.record.reader import FILE, JournalReader

LOCK = "lock"
"""The lock file's name inside a run directory."""


class Journal(JournalReader):
    """Writes groups, steps, evaluations and checkpoints of one run, each change one commit that is on disk after.

    Holds the run directory's lock and the newest lease until ``release``. Every commit checks the lease, so a process
    that was stopped, replaced and woken writes nothing. Used by the thread that opened it.
    """

    def __init__(self, database: Database, *, lock: Lock, number: int) -> None:
        super().__init__(database)
        self._lock, self._lease = lock, number

    @classmethod
    def create(
        cls, run_dir: str | Path, *, run_id: str, experiment: str, experiment_facts: Mapping[str, object]
    ) -> Journal:
        """A new journal in an existing folder. Raises RecordError when one is there already."""
        path, lock = Path(run_dir) / FILE, Lock(Path(run_dir) / LOCK)
        try:
            for found in (path, path.with_name(path.name + "-wal")):
                if found.exists():
                    raise RecordError(
                        str(found), problem="a journal is here already", fix="continue it, or set another run.dir"
                    )
            refuse_lost_journal(path)
            Database.create(path, _meta(run_id, experiment, experiment_facts))
        finally:
            lock.release()
        return cls.open(run_dir, run_id=run_id, experiment=experiment, experiment_facts=experiment_facts)

    @classmethod
    def open(
        cls,
        run_dir: str | Path,
        *,
        run_id: str,
        experiment: str,
        experiment_facts: Mapping[str, object],
        adopt: bool = False,
    ) -> Journal:
        """The run's journal, for its next life: lock taken, identity and chain checked, lease raised.

        ``adopt``: a journal of this run in which nothing was recorded yet becomes one of this experiment. Raises
        RecordError for a missing, empty or foreign file, another run, another experiment (naming the fields
        that differ), a broken chain, a journal shorter than a checkpoint, or a second writer (naming the first).
        """
        with ExitStack() as undo:
            lock = Lock(Path(run_dir) / LOCK)
            undo.callback(lock.release)
            database = Database.open(Path(run_dir) / FILE)
            undo.callback(database.close)
            found = JournalReader(database)
            if adopt and found.meta()["run_id"] == run_id and found.holds_nothing():
                refuse_shorter_than_checkpoints(found, Path(run_dir))
                _restate(database, _meta(run_id, experiment, experiment_facts))
            refuse_another_run(found, run_id=run_id, experiment=experiment, experiment_facts=experiment_facts)
            refuse_broken_chain(found)
            refuse_shorter_than_checkpoints(found, Path(run_dir))
            with database.transaction() as connection:
                number = lease.take(connection)
            undo.pop_all()
        return cls(database, lock=lock, number=number)

    @classmethod
    def open_or_create(
        cls, run_dir: str | Path, *, run_id: str, experiment: str, experiment_facts: Mapping[str, object]
    ) -> Journal:
        """Continues the journal in ``run_dir`` when a file of its name is there, else creates it.

        A first start that failed before it recorded anything holds nobody to its experiment.
        """
        path = Path(run_dir) / FILE
        with named_errors(path):
            there = path.exists()
        identity: dict[str, Any] = {"run_id": run_id, "experiment": experiment, "experiment_facts": experiment_facts}
        return cls.open(run_dir, **identity, adopt=True) if there else cls.create(run_dir, **identity)

    def release(self) -> None:
        """Closes the file and gives the lock back."""
        super().release()
        self._lock.release()

    def facts(self) -> Facts:
        """Groups, chain head and cursor as of now, with this writer's own lease."""
        return replace(super().facts(), lease=self._lease)

    def append(self, parcel: Parcel) -> None:
        """Records a parcel's groups in one commit: all, or none. The same groups again change nothing.

        Raises RecordError for another payload or fate under a recorded id, a gap in the cursor, or a group of another
        step, version or policy than the open step's.
        """
        payloads = [payload.to_bytes(group) for group in parcel.groups]
        with self._writing() as connection:
            for group, fate, data in zip(parcel.groups, parcel.fates, payloads, strict=True):
                digest = group.digest
                if self._recorded(group, digest, fate):
                    continue
                self._refuse_out_of_turn(group, parcel.step)
                head = chain.link(self.facts().chain_head, digest)
                connection.execute(
                    "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)",
                    (group.cursor, group.id, parcel.step, group.policy_version, group.tensor_digest,
                     group.snapshot_digest, digest, head, fate, data),
                )  # fmt: skip

    def close(self, report: StepReport) -> None:
        """The step has happened. Closing it again changes nothing.

        Raises TrainingError when an earlier life closed it with other tensors, RecordError when the steps before it
        are not closed or no group of it is recorded.
        """
        with self._writing() as connection:
            found = self.database.row("SELECT version, tensor_digest FROM steps WHERE step = ?", (report.step,))
            if found is not None:
                _refuse_another_outcome(report, found)
                return
            if report.step != self.last_step() + 1:
                raise self._out_of_order(report.step)
            last = self.database.row(
                "SELECT position, chain FROM groups WHERE step = ? ORDER BY position DESC LIMIT 1", (report.step,)
            )
            if last is None:
                raise RecordError(
                    f"step {report.step}", problem="no group of it is recorded", fix="append its groups first"
                )
            taken = last[0] + 1
            connection.execute(
                "INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)",
                (report.step, report.step, report.tensor_digest, taken, last[1], taken, reports.to_text(report)),
            )

    def note(self, step: int, facts: Mapping[str, object]) -> None:
        """Timings and other facts that may differ between equal runs; merged, key by key, into this life's note."""
        with self._writing() as connection:
            found = self.database.row("SELECT facts FROM notes WHERE step = ? AND lease = ?", (step, self._lease))
            merged = _merged(json.loads(found[0]) if found else {}, facts)
            connection.execute(
                "INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (step, self._lease, canonical_json(merged).decode())
            )

    def record_evaluation(self, evaluation: Evaluation) -> None:
        """The same evaluation again changes nothing; the same tensors with another result are a RecordError."""
        key = (evaluation.subject, evaluation.step, evaluation.data_digest)
        text = canonical_json(evaluation).decode()
        with self._writing() as connection:
            found = self.database.row(
                "SELECT tensor_digest, result FROM evaluations WHERE subject = ? AND step = ? AND data_digest = ?", key
            )
            if found == (evaluation.tensor_digest, text):
                return
            if found is not None and found[0] == evaluation.tensor_digest:
                raise RecordError(
                    f"evaluation of the {evaluation.subject} after step {evaluation.step}",
                    value=text,
                    problem=f"the journal holds another result for the same tensors and prompts: {found[1]}",
                    fix="continue with the software and machine that recorded it",
                )
            connection.execute(
                "INSERT OR REPLACE INTO evaluations VALUES (?, ?, ?, ?, ?)", (*key, evaluation.tensor_digest, text)
            )

    def commit(self, checkpoint: Checkpoint) -> None:
        """The checkpoint exists now. A step's checkpoint written again takes the place of the one before."""
        self.facts_at(checkpoint.step)
        with self._writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, 0)",
                (checkpoint.step, checkpoint.folder, checkpoint.manifest_digest, int(checkpoint.scheduled)),
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self.database.transaction() as connection:
            lease.check(connection, self._lease, self.database.path)
            yield connection

    def _recorded(self, group: Group, digest: str, fate: str) -> bool:
        """Whether exactly this group is in the journal already."""
        found = self.database.row("SELECT digest, fate FROM groups WHERE id = ?", (group.id,))
        if found is not None and found != (digest, fate):
            raise RecordError(
                f"group {group.id}",
                value=f"{digest[:12]}, {fate}",
                problem=f"is recorded already with another payload or fate: {found[0][:12]}, {found[1]}",
                fix="one id names one group; continue with the software and machine that recorded it",
            )
        return found is not None

    def _refuse_out_of_turn(self, group: Group, step: int) -> None:
        facts, before = self.facts(), step - 1
        if step != self.last_step() + 1:
            raise self._out_of_order(step)
        tensors = self.database.row("SELECT tensor_digest FROM steps WHERE step = ?", (before,)) or self.database.row(
            "SELECT tensor_digest FROM groups WHERE step = ? LIMIT 1", (step,)
        )
        rules = (
            ("cursor", group.cursor, facts.rows),
            ("policy_version", group.policy_version, before),
            ("tensor_digest", group.tensor_digest, tensors[0] if tensors else group.tensor_digest),
        )
        for name, found, expected in rules:
            if found != expected:
                raise RecordError(
                    f"group {group.id}, {name}",
                    value=found,
                    problem=f"step {step} can only take {expected} next",
                    fix="append the open step's groups, in cursor order, under the policy in force",
                )

    def _out_of_order(self, step: int) -> RecordError:
        return RecordError(
            str(self.database.path),
            value=step,
            problem=f"the open step is {self.last_step() + 1}",
            fix="steps are recorded one after the other",
        )


def _meta(run_id: str, experiment: str, experiment_facts: Mapping[str, object]) -> dict[str, str]:
    facts = canonical_json(experiment_facts).decode()
    return {"run_id": run_id, "experiment": experiment, "experiment_facts": facts}


def _restate(database: Database, meta: Mapping[str, str]) -> None:
    """In place, in one commit: another file under the old one's name would meet the old one's write-ahead log."""
    with database.transaction() as connection:
        connection.execute("DELETE FROM notes")
        connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", sorted(meta.items()))


def _refuse_another_outcome(report: StepReport, recorded: tuple[int, str]) -> None:
    if recorded != (report.step, report.tensor_digest):
        raise TrainingError(
            f"step {report.step}",
            value=report.tensor_digest[:12],
            problem=f"the replay does not reproduce the record: the step closed with tensors {recorded[1][:12]} before",
            fix="continue with the software, threads and machine that recorded it, or start in another run.dir",
        )


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """``new`` over ``old``; where both hold a mapping, their keys are united."""
    both = {
        name: _merged(old[name], value) if isinstance(old.get(name), Mapping) and isinstance(value, Mapping) else value
        for name, value in new.items()
    }
    return {**old, **both}
