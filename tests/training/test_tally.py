import pytest
import torch

from miniverl.metrics import declared
from miniverl.training.objective import Positions
from miniverl.training.tally import Tally
from miniverl.training.trainer import PolicyTrainer


@pytest.fixture
def tally(trainer_plan, parcel_for, tmp_path):
    tally = Tally()
    tally.add_parcel(parcel_for(PolicyTrainer(trainer_plan(), run_dir=str(tmp_path)), groups=3, samples=2))
    tally.denominator = 4.0
    return tally


def test_the_objective_is_divided_by_the_denominator_and_a_mean_by_the_weights(tally):
    for value in (1.0, 5.0):
        sums = {declared.DISTILLATION_LOSS.name: torch.tensor(value), declared.STUDENT_MASS.name: torch.tensor(value)}
        tally.add_loss(sums, torch.tensor([0.5, 0.5, 1.0]))
    metrics = tally.metrics()
    assert metrics[declared.DISTILLATION_LOSS.name] == 1.5
    assert metrics[declared.STUDENT_MASS.name] == 1.5


def test_entropy_and_mismatch_are_per_token(tally):
    tokens = sum(tally._lengths)
    logps = torch.full((tokens, 4), 0.25).log()
    positions = Positions(
        logps_CV=logps, ids_C=torch.zeros(tokens, dtype=torch.int64), weights_C=torch.ones(tokens), behaviour_C=None,
        where=slice(0, tokens),
    )  # fmt: skip
    rollout = torch.full((tokens,), 0.25)
    rollout[0] = 0.5
    tally.add_positions(positions, rollout.log())
    metrics = tally.metrics()
    assert metrics[declared.ENTROPY.name] == pytest.approx(torch.log(torch.tensor(4.0)).item())
    assert metrics[declared.PROBS_DIFF_MAX.name] == pytest.approx(0.25)
    assert metrics[declared.PROBS_DIFF_MEAN.name] == pytest.approx(0.25 / tokens)
    assert metrics[declared.LOGP_DIFF_MAX.name] == pytest.approx(0.6931, abs=1e-3)


def test_counts_are_of_what_was_learned_from(tally):
    metrics = tally.metrics()
    assert metrics[declared.GROUPS.name] == 3
    assert metrics[declared.TRAJECTORIES.name] == 6
    assert metrics[declared.UNIQUE_PROMPTS.name] == 3
    assert metrics[declared.CLIP_RATIO.name] == 1.0
    assert metrics.keys() <= declared.BY_NAME.keys()
