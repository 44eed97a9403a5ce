"""This file holds JournalActor: the process that owns the run's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ray.actor import ActorHandle

from actors.shell import Shell, served
from miniverl.contract.group import Group
from miniverl.contract.parcel import Parcel
from miniverl.contract.report import Checkpoint, Evaluation, KeptGroup, StepReport
from miniverl.record.facts import Facts
from miniverl.record.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Which run's file it is."""

    run_dir: str
    """Absolute."""
    run_id: str
    experiment: str
    experiment_facts: Mapping[str, object]


class JournalActor(Shell):
    def __init__(self, record: RunRecord) -> None:
        super().__init__("journal")
        self._record = record

    @served
    def start(self, controller: ActorHandle) -> None:
        """Takes the run directory's lock; SQLite wants to be used by the thread that opened it."""
        self._push_pulses(controller)
        self._journal = Journal.open_or_create(
            self._record.run_dir,
            run_id=self._record.run_id,
            experiment=self._record.experiment,
            experiment_facts=self._record.experiment_facts,
        )

    @served
    def find(self, step: int, tensor_digest: str) -> tuple[Group, ...]:
        return self._journal.find(step, tensor_digest)

    @served
    def append(self, parcel: Parcel) -> None:
        self._journal.append(parcel)

    @served
    def kept(self, step: int) -> tuple[KeptGroup, ...]:
        return self._journal.kept(step)

    @served
    def close(self, report: StepReport) -> None:
        self._journal.close(report)

    @served
    def note(self, step: int, facts: Mapping[str, object]) -> None:
        self._journal.note(step, facts)

    @served
    def facts_at(self, step: int) -> Facts:
        return self._journal.facts_at(step)

    @served
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        return self._journal.checkpoints()

    @served
    def commit(self, checkpoint: Checkpoint) -> None:
        self._journal.commit(checkpoint)

    @served
    def record_evaluation(self, evaluation: Evaluation) -> None:
        self._journal.record_evaluation(evaluation)

    @served
    def evaluations(self) -> tuple[Evaluation, ...]:
        return self._journal.evaluations()

    @served
    def reports(self) -> tuple[StepReport, ...]:
        return self._journal.reports()

    @served
    def release(self) -> None:
        """Closes the file and gives the lock back: the run is over, or stopped."""
        self._journal.release()
