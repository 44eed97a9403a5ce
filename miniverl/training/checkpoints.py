"""This file holds Checkpoints: when one is due, and that it exists only once the journal names it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from miniverl.contract.event import CHECKPOINT, Event
from miniverl.errors import RecordError
from miniverl.plan.plan import Plan
from miniverl.record.checkpoint import verify_checkpoint
from miniverl.training.roles import Journal, Trainer


class Checkpoints:
    def __init__(self, plan: Plan, *, trainer: Trainer, journal: Journal, say: Callable[[Event], None]) -> None:
        self._schedule, self._run_dir = plan.schedule, plan.run_dir
        self._trainer, self._journal, self._say = trainer, journal, say

    def save_if_due(self, step: int) -> None:
        """Every ``save_freq`` steps and at the end."""
        if self._due(step):
            self.save(step)

    def save(self, step: int) -> None:
        """Once, also when the step is replayed. One that is not due was made by an interrupt, and seals no shard."""
        if step == 0 or self._holds(step):
            return
        checkpoint = self._trainer.save(step, self._journal.facts_at(step), self._due(step))
        self._journal.commit(checkpoint)  # from here on it exists
        self._say(Event(kind=CHECKPOINT, text=f"checkpoint {checkpoint.folder}", step=step))

    def _due(self, step: int) -> bool:
        every, last = self._schedule.save_freq, self._schedule.total_training_steps
        return step == last or bool(every and step % every == 0)

    def _holds(self, step: int) -> bool:
        """Whether the step's checkpoint is there already; one that was damaged since is written again."""
        for known in self._journal.checkpoints():
            if known.step == step:
                with suppress(RecordError):
                    verify_checkpoint(self._run_dir, known)
                    return True
        return False
