import dataclasses

import numpy as np
import pytest

from miniverl.contract.prompt import Prompt
from miniverl.contract.request import Sampling
from miniverl.data.packaged import resource
from miniverl.data.template import ChatTemplate
from miniverl.training.teacher import ModelTeacher
from miniverl.training.trainer import PolicyTrainer


@pytest.fixture
def parcel(trainer_plan, parcel_for, tmp_path):
    return parcel_for(PolicyTrainer(trainer_plan(), run_dir=str(tmp_path)), groups=5, samples=3)


def test_the_exact_targets_are_distributions_at_every_response_token(teacher_plan, parcel):
    targets = ModelTeacher(teacher_plan()).score(parcel)
    assert targets.exact.shape == (parcel.response_tokens, 20)
    assert np.allclose(np.exp(targets.exact).sum(-1), 1.0, atol=1e-5)


def test_top_k_and_tail_add_up_to_the_exact_distribution(teacher_plan, parcel):
    exact = ModelTeacher(teacher_plan()).score(parcel).exact
    targets = ModelTeacher(teacher_plan(topk=5)).score(parcel)
    assert np.array_equal(targets.top_logps, np.take_along_axis(exact, targets.top_ids.astype(int), -1))
    assert np.all(targets.top_logps[:, -1] >= np.partition(exact, -6, axis=-1)[:, -6])
    assert np.allclose(np.exp(targets.top_logps).sum(-1) + np.exp(targets.tail), 1.0, atol=1e-5)


def test_sampled_targets_are_those_of_the_sampled_tokens(teacher_plan, parcel):
    exact = ModelTeacher(teacher_plan()).score(parcel).exact
    ids = np.concatenate([g.token_ids[i, :n] for g in parcel.kept for i, n in enumerate(g.lengths)])
    targets = ModelTeacher(_k1(teacher_plan())).score(parcel)
    assert np.array_equal(targets.sampled, exact[np.arange(len(ids)), ids])


def _k1(plan):
    return dataclasses.replace(plan, objective=dataclasses.replace(plan.objective, name="sampled_k1"))


def test_targets_do_not_depend_on_the_batch_size(teacher_plan, parcel):
    whole = ModelTeacher(teacher_plan()).score(parcel)
    cut = ModelTeacher(teacher_plan(batch_tokens=1)).score(parcel)
    assert whole.group_ids == cut.group_ids
    assert np.allclose(whole.exact, cut.exact, atol=1e-5)


def test_the_teacher_answers_sums_itself(teacher_plan):
    template = ChatTemplate(resource("miniverl://tiny-teacher"))
    sums = [(12, 30), (7, 8), (250, 341), (99, 1)]
    prompts = [
        Prompt(row=i, ids=template.encode([{"role": "user", "content": f"{a}+{b}"}]), data_source="", ground_truth=None)
        for i, (a, b) in enumerate(sums)
    ]
    sampling = Sampling(temperature=0.0, max_new_tokens=8, stop_token_ids=template.end_ids)
    answers = ModelTeacher(teacher_plan()).evaluate(prompts, sampling)
    assert [answer.texts[0] for answer in answers] == [str(a + b) for a, b in sums]


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_answering_leaves_the_teacher_as_it_was(teacher_plan, parcel, quantization):
    plan = teacher_plan()
    plan = dataclasses.replace(plan, model=dataclasses.replace(plan.model, quantization=quantization))
    teacher = ModelTeacher(plan)
    before = teacher.score(parcel).exact
    kinds = [type(module) for module in teacher._module.modules()]
    prompt = Prompt(row=0, ids=parcel.groups[0].prompt_ids, data_source="", ground_truth=None)
    teacher.evaluate([prompt], Sampling(temperature=0.0, max_new_tokens=4, stop_token_ids=(1,)))
    assert [type(module) for module in teacher._module.modules()] == kinds
    assert np.array_equal(teacher.score(parcel).exact, before)
