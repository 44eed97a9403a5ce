"""This file holds Evaluator: exact-match accuracy on held-out prompts, from real greedy generation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from miniverl.contract.canonical import json_digest
from miniverl.contract.group import Group
from miniverl.contract.prompt import Prompt
from miniverl.contract.report import Evaluation
from miniverl.contract.request import Sampling, requests_for
from miniverl.errors import DataError
from miniverl.plan.plan import SchedulePlan
from miniverl.rewards.exact import exact_answer
from miniverl.training.roles import Roles

STUDENT, TEACHER = "student", "teacher"


class Evaluator:
    """Asks the student through the rollout engine, and the teacher once; every answer sheet is recorded once."""

    def __init__(self, prompts: Sequence[Prompt], *, sampling: Sampling, schedule: SchedulePlan, run_seed: int) -> None:
        """Raises DataError for prompts that have no answer to be compared with."""
        without = [prompt.row for prompt in prompts if prompt.ground_truth is None]
        if without:
            raise DataError(
                "data.val_files", value=without[:10], problem=f"{len(without)} rows have no reward_model.ground_truth",
                fix="add the answers, or leave data.val_files out",
            )  # fmt: skip
        self._prompts, self._sampling, self._schedule, self._run_seed = prompts, sampling, schedule, run_seed
        self._data_digest = json_digest([[(prompt.digest, prompt.ground_truth) for prompt in prompts], sampling])

    def run_if_due(self, step: int, roles: Roles) -> Iterator[Evaluation]:
        """Yields what was evaluated now: nothing when the step is not due or recorded already."""
        if not self._due(step):
            return
        recorded = {
            (known.subject, known.step)
            for known in roles.journal.evaluations()
            if known.data_digest == self._data_digest
        }
        if (TEACHER, 0) not in recorded:
            yield self._record(TEACHER, 0, "", roles.teacher.evaluate(self._prompts, self._sampling), roles)
        if (STUDENT, step) not in recorded:
            policy = roles.trainer.policy()
            roles.rollout.synchronize(policy)
            requests = requests_for(
                list(enumerate(self._prompts)), policy.snapshot, samples=1, sampling=self._sampling,
                run_seed=self._run_seed,
            )  # fmt: skip
            answers = chain.from_iterable(roles.rollout.generate(requests))
            yield self._record(STUDENT, step, policy.snapshot.tensor_digest, answers, roles)

    def _due(self, step: int) -> bool:
        if not self._prompts:
            return False
        if step == 0:
            return self._schedule.val_before_train
        every = self._schedule.test_freq
        return step == self._schedule.total_training_steps or bool(every and step % every == 0)

    def _record(
        self, subject: str, step: int, tensor_digest: str, answers: Iterable[Group], roles: Roles
    ) -> Evaluation:
        groups = tuple(answers)
        right = sum(
            exact_answer(group.texts[0], str(prompt.ground_truth))
            for group, prompt in zip(groups, self._prompts, strict=True)
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
        roles.journal.record_evaluation(evaluation)
        return evaluation


def described(evaluation: Evaluation) -> str:
    """One line for whoever watches."""
    when = f" after {evaluation.step} steps" if evaluation.subject == STUDENT else ""
    return f"{evaluation.subject}{when}: {evaluation.accuracy:.1%} of {evaluation.n} held-out prompts exact"
