import dataclasses

import numpy as np
import pytest
import torch

from miniverl.contract.targets import TeacherTargets
from miniverl.metrics import declared
from miniverl.training.objective import Objective, Positions

N, V = 6, 12


def positions(logits, where=slice(0, N), behaviour=None):
    return Positions(
        logps_CV=logits[where].log_softmax(-1),
        ids_C=torch.arange(N)[where],
        weights_C=torch.ones(N)[where],
        behaviour_C=behaviour,
        where=where,
    )


@pytest.fixture
def logits():
    return torch.randn(N, V, generator=torch.Generator().manual_seed(1)).requires_grad_()


@pytest.fixture
def teacher_logps():
    return torch.randn(N, V, generator=torch.Generator().manual_seed(2)).log_softmax(-1).numpy()


def targets(**columns):
    return TeacherTargets(group_ids=("g",), temperature=1.0, **columns)


def test_a_chunk_takes_the_teachers_rows_of_its_own_positions(trainer_plan, logits, teacher_logps):
    objective = Objective(trainer_plan().objective)
    whole = objective.loss(positions(logits), targets(exact=teacher_logps)).total
    parts = [
        objective.loss(positions(logits, where), targets(exact=teacher_logps)).total
        for where in (slice(0, 2), slice(2, 6))
    ]
    assert torch.allclose(whole, sum(parts), atol=1e-6)


def test_all_ids_and_a_tail_are_the_exact_divergence(trainer_plan, logits, teacher_logps):
    exact = Objective(trainer_plan().objective).loss(positions(logits), targets(exact=teacher_logps))
    order = np.argsort(-teacher_logps, axis=-1)
    cells = targets(
        top_ids=order[:, : V - 1],
        top_logps=np.take_along_axis(teacher_logps, order[:, : V - 1], -1),
        tail=np.take_along_axis(teacher_logps, order[:, V - 1 :], -1)[:, 0],
    )
    loss = Objective(trainer_plan(topk=V - 1).objective).loss(positions(logits), cells)
    assert torch.allclose(loss.total, exact.total, atol=1e-5)
    assert loss.metrics.keys() == {
        m.name for m in (declared.DISTILLATION_LOSS, declared.STUDENT_MASS, declared.TEACHER_MASS)
    }


def test_importance_weights_correct_sampled_k1_only_when_asked(trainer_plan, logits, teacher_logps):
    sampled = targets(sampled=teacher_logps[np.arange(N), np.arange(N)])
    behaviour = positions(logits).logps_C.detach() - 0.5
    plain = trainer_plan(name="sampled_k1").objective
    corrected = dataclasses.replace(plan := plain, rollout_is="token")
    capped = dataclasses.replace(plan, rollout_is="token", rollout_is_threshold=1.2)
    off, on, cut = (
        Objective(p).loss(positions(logits, behaviour=behaviour), sampled).total for p in (plain, corrected, capped)
    )
    assert torch.allclose(on, off * np.exp(0.5).item(), rtol=1e-5)
    assert torch.allclose(cut, off * 1.2, rtol=1e-5)
