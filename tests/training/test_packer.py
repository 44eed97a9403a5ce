import numpy as np
import pytest

from miniverl.training.packer import micro_batches
from miniverl.training.trainer import PolicyTrainer


@pytest.fixture
def parcel(trainer_plan, parcel_for, tmp_path):
    return parcel_for(PolicyTrainer(trainer_plan(), run_dir=str(tmp_path)), groups=6, samples=3)


@pytest.mark.parametrize("budget", [1, 30, 64, 10_000])
def test_packing_loses_no_token_and_keeps_the_order(parcel, budget):
    batches = list(micro_batches(parcel, budget=budget))
    ids = [
        row.rows.ids_BL[i, : p + n].tolist()
        for row in batches
        for i, (p, n) in enumerate(zip(row.rows.prompt_lengths, row.rows.lengths, strict=True))
    ]
    assert ids == [group.trajectory(i).ids.tolist() for group in parcel.kept for i in range(group.samples)]
    assert [batch.positions.start for batch in batches[1:]] == [batch.positions.stop for batch in batches[:-1]]
    assert batches[-1].positions.stop == parcel.response_tokens


@pytest.mark.parametrize("budget", [30, 64])
def test_no_micro_batch_passes_the_budget_unless_a_single_row_does(parcel, budget):
    for batch in micro_batches(parcel, budget=budget):
        assert batch.rows.ids_BL.numel() <= budget or len(batch.rows.lengths) == 1


def test_recorded_log_probs_stay_with_their_tokens(parcel):
    found = np.concatenate([batch.rollout_logps().numpy() for batch in micro_batches(parcel, budget=30)])
    expected = [group.logps[i, :n] for group in parcel.kept for i, n in enumerate(group.lengths)]
    assert np.array_equal(found, np.concatenate(expected))
