import dataclasses

import numpy as np
import pytest

from miniverl.contract.parcel import KEPT, Parcel
from miniverl.contract.report import KeptGroup
from miniverl.errors import IdentityError, TrainingError
from miniverl.metrics import declared
from miniverl.models import adapter
from miniverl.record.checkpoint import read_checkpoint
from miniverl.record.facts import Facts
from miniverl.training.teacher import ModelTeacher
from miniverl.training.trainer import PolicyTrainer

REDUCTIONS = ["token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm"]


FACTS = Facts(rows=4, chain_head="c", cursor=4, lease=1)


def kept(*parcels: Parcel) -> list[KeptGroup]:
    return [KeptGroup(id=group.id, digest=group.digest) for parcel in parcels for group in parcel.kept]


def gradients(plan, parcels, teacher, tmp_path) -> dict[str, np.ndarray]:
    """What one step of SGD-like size would apply: read back through AdamW's first moment, (1 - beta1) g."""
    trainer = PolicyTrainer(dataclasses.replace(plan, optim=dataclasses.replace(plan.optim, clip_grad=float("inf"))),
                            run_dir=str(tmp_path))  # fmt: skip
    trainer.begin(1)
    for parcel in parcels:
        trainer.add(parcel, teacher.score(parcel))
    trainer.update(1, kept(*parcels))
    state = trainer._optimizer.state()
    return {name: array / 0.1 for name, array in state.items() if name.startswith("exp_avg.")}


def split(parcel: Parcel) -> list[Parcel]:
    """The same groups, one parcel each."""
    return [dataclasses.replace(parcel, groups=(group,), fates=("kept",)) for group in parcel.groups]


@pytest.mark.parametrize("mode", REDUCTIONS)
def test_the_gradient_does_not_depend_on_how_the_step_is_cut(trainer_plan, teacher_plan, parcel_for, tmp_path, mode):
    plan = trainer_plan(loss_agg_mode=mode)
    parcel = parcel_for(PolicyTrainer(plan, run_dir=str(tmp_path)))
    teacher = ModelTeacher(teacher_plan())
    whole = gradients(plan, [parcel], teacher, tmp_path)
    for other, parcels in (
        (trainer_plan(loss_agg_mode=mode, micro_batch_tokens=20), [parcel]),
        (trainer_plan(loss_agg_mode=mode, logprob_chunk=3), [parcel]),
        (plan, split(parcel)),
    ):
        cut = gradients(other, parcels, teacher, tmp_path)
        for name, array in whole.items():
            assert np.abs(cut[name] - array).max() <= 1e-5 * max(np.abs(array).max(), 1e-3), name


def test_reductions_are_different_objectives(trainer_plan, teacher_plan, parcel_for, tmp_path):
    parcel = parcel_for(PolicyTrainer(trainer_plan(), run_dir=str(tmp_path)))
    teacher = ModelTeacher(teacher_plan())
    found = [gradients(trainer_plan(loss_agg_mode=mode), [parcel], teacher, tmp_path) for mode in REDUCTIONS]
    name = max(found[0], key=lambda key: np.abs(found[0][key]).max())
    sizes = [np.abs(gradient[name]).max() for gradient in found]
    assert len({round(float(size), 7) for size in sizes}) == len(REDUCTIONS)


@pytest.mark.parametrize(
    "objective",
    [
        {},
        {"divergence": "forward_kl"},
        {"divergence": "jsd"},
        {"topk": 4},
        {"name": "sampled_k1"},
        {"temperature": 0.5},
    ],
    ids=str,
)
def test_a_teacher_equal_to_the_student_teaches_nothing(trainer_plan, teacher_plan, parcel_for, tmp_path, objective):
    trainer = PolicyTrainer(trainer_plan(**objective), run_dir=str(tmp_path))
    parcel = parcel_for(trainer)
    trainer.begin(1)
    trainer.add(parcel, ModelTeacher(teacher_plan("tiny-student", **objective)).score(parcel))
    report = trainer.update(1, kept(parcel))
    assert abs(report.metrics[declared.DISTILLATION_LOSS.name]) < 1e-6
    assert report.metrics[declared.GRAD_NORM.name] < 1e-4
    trainer = PolicyTrainer(trainer_plan(**objective), run_dir=str(tmp_path))
    trainer.begin(1)
    trainer.add(parcel, ModelTeacher(teacher_plan("tiny-teacher", **objective)).score(parcel))
    assert trainer.update(1, kept(parcel)).metrics[declared.GRAD_NORM.name] > 1e-2


def test_an_update_never_learns_from_the_rest_when_a_parcel_is_missing(
    trainer_plan, teacher_plan, parcel_for, tmp_path
):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    before = trainer.policy().snapshot.tensor_digest
    parcels = [parcel_for(trainer, groups=2), parcel_for(trainer, groups=2, first=2)]
    trainer.begin(1)
    trainer.add(parcels[0], ModelTeacher(teacher_plan()).score(parcels[0]))
    with pytest.raises(TrainingError, match="not what the trainer received"):
        trainer.update(1, kept(*parcels))
    assert trainer.policy().snapshot.tensor_digest == before
    assert trainer.policy().snapshot.version == 0


def test_beginning_again_forgets_the_unfinished_attempt(trainer_plan, teacher_plan, parcel_for, tmp_path):
    teacher = ModelTeacher(teacher_plan())
    digests = []
    for attempts in (1, 2):
        trainer = PolicyTrainer(trainer_plan(lora_dropout=0.1), run_dir=str(tmp_path))
        parcel = parcel_for(trainer)
        for _ in range(attempts):
            trainer.begin(1)
            trainer.add(parcel, teacher.score(parcel))
        digests.append(trainer.update(1, kept(parcel)).tensor_digest)
    assert digests[0] == digests[1]


def test_groups_of_another_policy_are_refused(trainer_plan, teacher_plan, parcel_for, tmp_path):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    teacher = ModelTeacher(teacher_plan())
    stale = parcel_for(trainer)
    trainer.begin(1)
    trainer.add(stale, teacher.score(stale))
    trainer.update(1, kept(stale))
    trainer.begin(2)
    with pytest.raises(IdentityError, match="another policy"):
        trainer.add(dataclasses.replace(stale, step=2), teacher.score(stale))


def test_targets_that_do_not_fit_the_parcel_are_refused(trainer_plan, teacher_plan, parcel_for, tmp_path):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    teacher = ModelTeacher(teacher_plan())
    parcel, other = parcel_for(trainer), parcel_for(trainer, first=4)
    trainer.begin(1)
    with pytest.raises(TrainingError, match="without signal"):
        trainer.add(parcel, None)
    with pytest.raises(TrainingError, match="every kept response token"):
        trainer.add(parcel, teacher.score(other))
    with pytest.raises(TrainingError, match="temperature"):
        trainer.add(parcel, ModelTeacher(teacher_plan(temperature=0.5)).score(parcel))


def test_a_loss_that_is_not_finite_skips_the_update_and_is_reported(trainer_plan, teacher_plan, parcel_for, tmp_path):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    parcel = parcel_for(trainer)
    targets = ModelTeacher(teacher_plan()).score(parcel)
    spoiled = targets.exact.copy()
    spoiled[0, 0] = np.nan
    trainer.begin(1)
    trainer.add(parcel, dataclasses.replace(targets, exact=spoiled))
    before = trainer.policy().snapshot.tensor_digest
    report = trainer.update(1, kept(parcel))
    assert (report.skipped, report.updates, report.tensor_digest) == (1, 0, before)
    assert trainer.policy().snapshot.version == 1
    parcel = parcel_for(trainer, step=2, first=4)
    trainer.begin(2)
    trainer.add(parcel, ModelTeacher(teacher_plan()).score(parcel))
    assert trainer.update(2, kept(parcel)).updates == 1


def test_updating_a_finished_step_returns_its_report_and_changes_nothing(
    trainer_plan, teacher_plan, parcel_for, tmp_path
):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    parcel = parcel_for(trainer)
    trainer.begin(1)
    trainer.add(parcel, ModelTeacher(teacher_plan()).score(parcel))
    report = trainer.update(1, kept(parcel))
    assert trainer.update(1, kept(parcel)) is report
    assert trainer.policy().snapshot.tensor_digest == report.tensor_digest


@pytest.mark.parametrize("lora", [True, False])
def test_a_restored_trainer_goes_on_to_the_same_bytes(trainer_plan, teacher_plan, parcel_for, tmp_path, lora):
    teacher = ModelTeacher(teacher_plan())

    def step(trainer, number):
        parcel = parcel_for(trainer, step=number, first=4 * number)
        trainer.begin(number)
        trainer.add(parcel, teacher.score(parcel))
        return trainer.update(number, kept(parcel))

    untouched = PolicyTrainer(trainer_plan(lora=lora), run_dir=str(tmp_path))
    step(untouched, 1)
    checkpoint = untouched.save(1, FACTS, True)
    expected = step(untouched, 2)
    restored = PolicyTrainer(trainer_plan(lora=lora), run_dir=str(tmp_path))
    restored.restore(str(tmp_path / checkpoint.folder))
    assert step(restored, 2) == expected
    tensors, manifest = read_checkpoint(tmp_path / checkpoint.folder)
    assert manifest.metadata["updates"] == 1
    assert tensors.keys() == {"adapter.safetensors", "optimizer.safetensors"}


def test_the_adapter_learns_and_the_base_stays(trainer_plan, teacher_plan, parcel_for, tmp_path):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    teacher = ModelTeacher(teacher_plan())
    frozen = {n: p.clone() for n, p in trainer._module.named_parameters() if not p.requires_grad}
    losses = []
    for number in range(1, 6):
        parcel = parcel_for(trainer, step=number)
        trainer.begin(number)
        trainer.add(parcel, teacher.score(parcel))
        losses.append(trainer.update(number, kept(parcel)).metrics[declared.DISTILLATION_LOSS.name])
    assert losses[-1] < losses[0] / 2
    assert all(bool((p == frozen[n]).all()) for n, p in trainer._module.named_parameters() if n in frozen)
    assert all(np.abs(array).max() > 0 for array in adapter.read(trainer._module).values())


def test_scores_are_those_of_training_without_dropout(trainer_plan, teacher_plan, parcel_for, tmp_path):
    plain = PolicyTrainer(trainer_plan(lr=0.1), run_dir=str(tmp_path))
    first = parcel_for(plain)
    plain.begin(1)
    plain.add(first, ModelTeacher(teacher_plan()).score(first))
    plain.update(1, kept(first))  # an adapter that is not zero, so that dropout would show
    parcel = parcel_for(plain, step=2)
    scores = plain.score(parcel, 0.7)
    assert len(scores.packed) == parcel.response_tokens
    np.testing.assert_allclose(scores.packed, scores.alone, atol=5e-5, rtol=0)
    dropping = PolicyTrainer(trainer_plan(lora_dropout=0.9), run_dir=str(tmp_path))
    dropping.restore(str(tmp_path / plain.save(1, FACTS, True).folder))
    np.testing.assert_array_equal(dropping.score(parcel, 0.7).packed, scores.packed)


def test_rows_that_are_packed_alone_have_no_noise(trainer_plan, parcel_for, tmp_path):
    trainer = PolicyTrainer(trainer_plan(micro_batch_tokens=1), run_dir=str(tmp_path))
    scores = trainer.score(parcel_for(trainer), 1.0)
    np.testing.assert_array_equal(scores.packed, scores.alone)


def test_scoring_changes_nothing_of_the_training(trainer_plan, teacher_plan, parcel_for, tmp_path):
    digests = []
    for scored in (False, True):
        trainer = PolicyTrainer(trainer_plan(lora_dropout=0.5), run_dir=str(tmp_path))
        parcel = parcel_for(trainer)
        if scored:
            trainer.score(parcel, 1.0)
        trainer.begin(1)
        trainer.add(parcel, ModelTeacher(teacher_plan()).score(parcel))
        digests.append(trainer.update(1, kept(parcel)).tensor_digest)
    assert digests[0] == digests[1]


def test_groups_of_another_policy_are_not_scored(trainer_plan, parcel_for, tmp_path):
    trainer = PolicyTrainer(trainer_plan(), run_dir=str(tmp_path))
    group = dataclasses.replace(parcel_for(trainer).groups[0], policy_version=3)
    with pytest.raises(IdentityError, match="another policy"):
        trainer.score(Parcel(step=1, groups=(group,), fates=(KEPT,)), 1.0)
