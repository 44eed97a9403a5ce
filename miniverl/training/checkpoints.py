"""This file holds Checkpoints: when one is due, and that it exists only once the journal names it."""

from __future__ import annotations

from collections.abc import Callable

from miniverl.contract.event import CHECKPOINT, Event
from miniverl.plan.plan import SchedulePlan
from miniverl.training.roles import Journal, Trainer


class Checkpoints:
    def __init__(self, schedule: SchedulePlan, *, trainer: Trainer, journal: Journal, say: Callable[[Event], None]):
        self._schedule, self._trainer, self._journal, self._say = schedule, trainer, journal, say

    def save_if_due(self, step: int) -> None:
        """Every ``save_freq`` steps and at the end; once, also when the step is replayed."""
        every, last = self._schedule.save_freq, self._schedule.total_training_steps
        if step == last or (every and step % every == 0):
            self.save(step, scheduled=True)

    def save(self, step: int, *, scheduled: bool) -> None:
        if step == 0 or any(known.step == step for known in self._journal.checkpoints()):
            return
        checkpoint = self._trainer.save(step, self._journal.facts_at(step), scheduled)
        self._journal.commit(checkpoint)  # from here on it exists
        self._say(Event(kind=CHECKPOINT, text=f"checkpoint {checkpoint.folder}", step=step))
