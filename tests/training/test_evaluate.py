import dataclasses

import pytest

from miniverl.errors import DataError
from miniverl.training.assemble import assemble
from miniverl.training.evaluate import Evaluator, described
from miniverl.training.local import local_roles


@pytest.fixture
def run(plan_for):
    plan = plan_for()
    roles = local_roles(plan)
    yield assemble(plan, roles, stop=lambda: False, say=lambda event: None)
    roles.journal.release()


def test_the_teacher_knows_sums_and_the_student_mostly_does_not(run):
    teacher, student = run.evaluator.run_if_due(0, run.roles)
    assert (teacher.subject, student.subject) == ("teacher", "student")
    assert teacher.accuracy >= 0.9
    assert student.accuracy <= 0.5
    assert described(student).startswith("student after 0 steps:")


def test_an_evaluation_that_is_recorded_is_not_repeated(run):
    assert len(list(run.evaluator.run_if_due(0, run.roles))) == 2
    tokens = run.roles.rollout.metrics()["generated_tokens"]
    assert list(run.evaluator.run_if_due(0, run.roles)) == []
    assert run.roles.rollout.metrics()["generated_tokens"] == tokens


def test_a_step_that_is_not_due_is_not_evaluated(run):
    assert list(run.evaluator.run_if_due(1, run.roles)) == []


def test_prompts_without_an_answer_are_refused_by_row(run):
    prompts = list(run.evaluator._prompts)
    prompts[1] = dataclasses.replace(prompts[1], ground_truth=None)
    with pytest.raises(DataError, match=rf"\[{prompts[1].row}\].*ground_truth"):
        Evaluator(prompts, sampling=run.plan.evaluation_sampling, schedule=run.plan.schedule, run_seed=0)


def test_other_held_out_prompts_are_evaluated_anew(run):
    assert len(list(run.evaluator.run_if_due(0, run.roles))) == 2
    other = Evaluator(
        run.evaluator._prompts[:4], sampling=run.plan.evaluation_sampling, schedule=run.plan.schedule, run_seed=0
    )
    assert [one.n for one in other.run_if_due(0, run.roles)] == [4, 4]


def test_accuracy_is_counted_against_the_ground_truth(run):
    never = [dataclasses.replace(prompt, ground_truth="never") for prompt in run.evaluator._prompts]
    evaluator = Evaluator(never, sampling=run.plan.evaluation_sampling, schedule=run.plan.schedule, run_seed=0)
    teacher, student = evaluator.run_if_due(0, run.roles)
    assert (teacher.accuracy, student.accuracy) == (0.0, 0.0)
