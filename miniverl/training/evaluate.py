"""This file holds Evaluator: exact-match accuracy on held-out prompts, from real greedy generation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from miniverl.contract.canonical import json_digest
from miniverl.contract.event import EVALUATION, Event
from miniverl.contract.group import Group
from miniverl.contract.prompt import Prompt
from miniverl.contract.report import Evaluation
from miniverl.contract.request import Sampling, requests_for
from miniverl.plan.plan import SchedulePlan
from miniverl.rewards.exact import exact_answer
from miniverl.training.roles import Journal, Rollout, Teacher, Trainer

STUDENT, TEACHER = "student", "teacher"


class Evaluator:
    """Asks the student through the rollout engine and the teacher once, and records each answer sheet once."""

    def __init__(self, prompts: Sequence[Prompt], *, sampling: Sampling, schedule: SchedulePlan, run_seed: int) -> None:
        self._prompts, self._sampling, self._schedule, self._run_seed = prompts, sampling, schedule, run_seed
        truths = [(prompt.digest, prompt.ground_truth) for prompt in prompts]
        self._data_digest = json_digest([*truths, sampling])

    def run_if_due(
        self, step: int, *, trainer: Trainer, rollout: Rollout, teacher: Teacher, journal: Journal,
        say: Callable[[Event], None],
    ) -> None:  # fmt: skip
        """Does nothing when the step is not due or its evaluation is recorded: a replay does not repeat it."""
        if not self._due(step):
            return
        recorded = {(known.subject, known.step) for known in journal.evaluations()}
        if (TEACHER, 0) not in recorded:
            self._record(TEACHER, 0, "", teacher.evaluate(self._prompts, self._sampling), journal, say)
        if (STUDENT, step) not in recorded:
            policy = trainer.policy()
            rollout.synchronize(policy)
            requests = requests_for(
                list(enumerate(self._prompts)), policy.snapshot, samples=1, sampling=self._sampling,
                run_seed=self._run_seed,
            )  # fmt: skip
            answers = chain.from_iterable(rollout.generate(requests))
            self._record(STUDENT, step, policy.snapshot.tensor_digest, answers, journal, say)

    def _due(self, step: int) -> bool:
        if not self._prompts:
            return False
        if step == 0:
            return self._schedule.val_before_train
        every = self._schedule.test_freq
        return step == self._schedule.total_training_steps or bool(every and step % every == 0)

    def _record(
        self, subject: str, step: int, tensor_digest: str, answers: Iterable[Group], journal: Journal,
        say: Callable[[Event], None],
    ) -> None:  # fmt: skip
        groups = tuple(answers)
        right = sum(
            exact_answer(group.texts[0], prompt.ground_truth)
            for group, prompt in zip(groups, self._prompts, strict=True)
            if prompt.ground_truth is not None
        )
        evaluation = Evaluation(
            subject=subject,
            step=step,
            accuracy=right / len(groups),
            n=len(groups),
            truncated=sum(group.stop_reasons[0] == "length" for group in groups),
            mean_length=sum(group.response_tokens for group in groups) / len(groups),
            data_digest=self._data_digest,
            tensor_digest=tensor_digest,
        )
        journal.record_evaluation(evaluation)
        values = {"accuracy": evaluation.accuracy, "n": float(evaluation.n)}
        text = f"{subject} after {step} steps: {evaluation.accuracy:.1%} of {evaluation.n} held-out prompts exact"
        say(Event(kind=EVALUATION, text=text if subject == STUDENT else text.replace(" after 0 steps", ""), step=step,
                  values=values))  # fmt: skip
