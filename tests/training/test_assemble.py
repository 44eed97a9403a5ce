import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from miniverl.contract.event import NOTE
from miniverl.data.packaged import resource
from miniverl.errors import DataError, RecordError
from miniverl.record.reader import PROBE, JournalReader
from miniverl.training.assemble import assemble, wandb_id
from miniverl.training.local import local_roles
from tests.finished import bytes_of, finish


@pytest.fixture
def finished(plan_for):
    plan = plan_for()
    finish(plan)
    return plan


def taken_up(plan):
    """Where a new life of the run would start, and what it says."""
    roles, notes = local_roles(plan), []
    try:
        return assemble(plan, roles, stop=lambda: False, say=notes.append).start, [
            n.text for n in notes if n.kind == NOTE
        ]
    finally:
        roles.journal.release()


def test_a_run_is_taken_up_at_its_newest_checkpoint(finished):
    start, notes = taken_up(finished)
    assert start == 4
    assert notes == ["continuing after step 4"]


def drawn_by_probes(plan) -> int:
    """Tokens that the newest life of the run drew to judge its engine."""
    with JournalReader.read_only(plan.run_dir) as journal:
        notes, newest = journal.notes(), journal.facts().lease
    probes = [facts[PROBE] for lease, _, facts in notes if lease == newest and PROBE in facts]
    return sum(probe[kind]["engine"]["tokens"] for probe in probes for kind in ("sampled", "greedy"))


@pytest.mark.slow
@pytest.mark.parametrize("file", ["adapter.safetensors", "optimizer.safetensors", "manifest.json"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_taken(finished, untouched, file):
    path = Path(finished.run_dir) / "checkpoints" / "step-4" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    start, notes = taken_up(finished)
    assert start == 2
    assert file in notes[0] and "checkpoint before it" in notes[0]
    finish(finished)
    assert bytes_of(finished) == untouched


def test_without_any_checkpoint_the_whole_record_is_replayed(finished, untouched):
    shutil.rmtree(Path(finished.run_dir) / "checkpoints")
    start, _ = taken_up(finished)
    assert start == 0
    roles = finish(finished)
    assert bytes_of(finished) == untouched
    assert roles.rollout.metrics()["generated_tokens"] == drawn_by_probes(finished)


def test_a_checkpoint_named_by_the_recipe_is_taken_and_the_steps_after_it_replayed(finished, untouched):
    older = replace(finished, resume=str(Path(finished.run_dir) / "checkpoints" / "step-2"))
    assert taken_up(older)[0] == 2
    assert finish(older).rollout.metrics()["generated_tokens"] == drawn_by_probes(finished)
    assert bytes_of(finished) == untouched


@pytest.mark.parametrize("harm", ["unknown", "damaged"])
def test_a_named_checkpoint_that_will_not_do_is_refused_rather_than_replaced(finished, harm):
    folder = Path(finished.run_dir) / "checkpoints" / ("step-2" if harm == "damaged" else "step-3")
    if harm == "damaged":
        (folder / "adapter.safetensors").write_bytes(b"")
    with pytest.raises(RecordError):
        taken_up(replace(finished, resume=str(folder)))


def test_drafts_that_no_row_names_are_swept(finished):
    draft = Path(finished.run_dir) / "checkpoints" / ".tmp-1-9"
    draft.mkdir()
    taken_up(finished)
    assert not draft.exists()


def test_data_that_changed_since_the_plan_was_made_is_refused(plan_for, tmp_path):
    copy = tmp_path / "train.parquet"
    shutil.copy(resource("miniverl://sums/train.parquet"), copy)
    plan = plan_for("run", f"data.train_files={copy}")
    shutil.copy(resource("miniverl://sums/validation.parquet"), copy)
    with pytest.raises(DataError, match=r"train\.parquet.*changed since"):
        taken_up(plan)


def test_the_wandb_run_is_drawn_once_for_a_directory(tmp_path):
    first = wandb_id(tmp_path)
    assert wandb_id(tmp_path) == first
    other = tmp_path / "other"
    other.mkdir()
    assert wandb_id(other) != first
