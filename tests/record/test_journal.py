"""This file holds the behaviour of the journal: what is in it, what it refuses, and who may write."""

import dataclasses
import math
import sqlite3

import pytest

from miniverl.contract.parcel import DROPPED, KEPT, Parcel
from miniverl.contract.report import Checkpoint, Evaluation
from miniverl.errors import RecordError, TrainingError
from miniverl.record import chain
from miniverl.record.journal import Journal
from tests.record.drawn import FACTS, IDENTITY, again, fresh, group, in_a_child, parcel, report, run_steps, tensors

EVALUATION = Evaluation(
    subject="student", step=0, accuracy=0.25, n=4, truncated=1, mean_length=3.5, data_digest="d", tensor_digest="t"
)


@pytest.fixture
def journal(tmp_path):
    with fresh(tmp_path) as opened:
        yield opened


def test_a_group_comes_back_as_it_was_appended(journal):
    sent = parcel([0, 1, 2])
    journal.append(sent)
    found = journal.find(1, tensors(0))
    assert [one.digest for one in found] == [one.digest for one in sent.groups]


def test_the_same_groups_again_change_nothing(journal):
    journal.append(parcel([0, 1]))
    before = journal.facts()
    journal.append(parcel([0, 1]))
    assert journal.facts() == before and before.rows == 2


def test_groups_recorded_already_may_come_with_new_ones(journal):
    journal.append(parcel([0]))
    journal.append(parcel([0, 1]))
    assert journal.facts().rows == 2


def test_another_payload_under_the_same_id_is_an_error_that_names_both(journal):
    journal.append(parcel([0, 1]))
    other = group(1, texts=("else", "where"))
    with pytest.raises(RecordError) as refused:
        journal.append(Parcel(step=1, groups=(other,), fates=(KEPT,)))
    assert other.digest[:12] in str(refused.value) and group(1).digest[:12] in str(refused.value)
    assert journal.kept(1)[1].digest == group(1).digest


def test_another_fate_under_the_same_id_is_an_error(journal):
    journal.append(parcel([0]))
    with pytest.raises(RecordError, match=DROPPED):
        journal.append(parcel([0], fate=DROPPED))


def test_a_parcel_with_one_bad_group_leaves_nothing_behind(journal):
    good, bad = group(0), group(1, policy_version=3)
    with pytest.raises(RecordError, match="policy_version"):
        journal.append(Parcel(step=1, groups=(good, bad), fates=(KEPT, KEPT)))
    assert journal.facts().rows == 0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (parcel([3]), "cursor"),
        (parcel([2], step=2), "open step is 1"),
        (parcel([2], tensor_digest="f" * 64), "tensor_digest"),
        (parcel([2], policy_version=1), "policy_version"),
    ],
)
def test_a_group_out_of_turn_is_refused(journal, wrong, named):
    journal.append(parcel([0, 1]))
    with pytest.raises(RecordError, match=named):
        journal.append(wrong)
    assert journal.facts().rows == 2


def test_a_step_takes_only_groups_of_the_tensors_the_step_before_left(journal):
    run_steps(journal, 1)
    with pytest.raises(RecordError, match="tensor_digest"):
        journal.append(parcel([2], step=2, tensor_digest="f" * 64))


def test_find_refuses_groups_that_other_tensors_drew(journal):
    journal.append(parcel([0]))
    with pytest.raises(RecordError, match=group(0).id):
        journal.find(1, "f" * 64)
    assert journal.find(2, "f" * 64) == ()


def test_dropped_groups_are_recorded_but_not_kept(journal):
    groups = (group(0), group(1), group(2))
    journal.append(Parcel(step=1, groups=groups, fates=(KEPT, DROPPED, KEPT)))
    assert [one.id for one in journal.kept(1)] == [groups[0].id, groups[2].id]
    assert len(journal.find(1, tensors(0))) == 3


def test_the_chain_head_follows_from_the_digests(journal):
    journal.append(parcel([0]))
    journal.append(parcel([1, 2]))
    head = chain.START
    for cursor in range(3):
        head = chain.link(head, group(cursor).digest)
    assert journal.facts().chain_head == head


def test_the_cursor_counts_prompts_of_closed_steps_only(journal):
    run_steps(journal, 2)
    journal.append(parcel([4, 5], step=3))
    assert (journal.facts().cursor, journal.facts().rows) == (4, 6)


def test_facts_of_a_closed_step_stay_as_they_were(journal):
    journal.append(parcel([0, 1]))
    journal.close(report(1))
    then = journal.facts()
    journal.append(parcel([2], step=2))
    assert journal.facts_at(1) == then != journal.facts()
    assert journal.facts_at(0) == dataclasses.replace(then, rows=0, cursor=0, chain_head=chain.START)
    with pytest.raises(RecordError, match="not closed"):
        journal.facts_at(2)


def test_closing_a_step_again_changes_nothing(journal):
    run_steps(journal, 1)
    journal.close(report(1))
    assert [one.step for one in journal.reports()] == [1]


def test_a_replay_that_ends_in_other_tensors_is_named(journal):
    run_steps(journal, 2)
    with pytest.raises(TrainingError, match="does not reproduce the record"):
        journal.close(report(1, tensor_digest="f" * 64))
    assert journal.reports()[0].tensor_digest == tensors(1)


def test_steps_close_one_after_the_other_and_never_without_groups(journal):
    journal.append(parcel([0]))
    with pytest.raises(RecordError, match="open step is 1"):
        journal.close(report(2))
    journal.close(report(1))
    with pytest.raises(RecordError, match="no group"):
        journal.close(report(2))


def test_a_report_with_metrics_that_are_not_finite_comes_back(journal):
    journal.append(parcel([0]))
    journal.close(report(1, metrics={"loss": math.nan, "norm": math.inf, "lr": 1e-3}))
    found = journal.reports()[0].metrics
    assert math.isnan(found["loss"]) and found["norm"] == math.inf and found["lr"] == 1e-3


def test_an_evaluation_again_changes_nothing_and_another_result_is_an_error(journal):
    journal.record_evaluation(EVALUATION)
    journal.record_evaluation(EVALUATION)
    assert journal.evaluations() == (EVALUATION,)
    with pytest.raises(RecordError, match="another result"):
        journal.record_evaluation(dataclasses.replace(EVALUATION, accuracy=0.5))
    assert journal.evaluations() == (EVALUATION,)


def test_evaluations_come_in_order_of_step(journal):
    for step, subject in ((4, "student"), (0, "teacher"), (0, "student")):
        journal.record_evaluation(dataclasses.replace(EVALUATION, step=step, subject=subject))
    assert [(one.step, one.subject) for one in journal.evaluations()] == [
        (0, "student"), (0, "teacher"), (4, "student"),
    ]  # fmt: skip


def test_checkpoints_come_newest_first_and_only_of_closed_steps(journal):
    run_steps(journal, 2)
    made = [Checkpoint(step=n, folder=f"checkpoints/step-{n}", manifest_digest="m", scheduled=n == 2) for n in (1, 2)]
    for one in (*made, made[0]):
        journal.commit(one)
    assert journal.checkpoints() == (made[1], made[0])
    with pytest.raises(RecordError, match="not closed"):
        journal.commit(Checkpoint(step=3, folder="checkpoints/step-3", manifest_digest="m", scheduled=True))


def test_notes_are_merged_within_a_life_and_kept_apart_between_lives(tmp_path):
    with fresh(tmp_path) as first:
        first.note(1, {"actors": {"trainer": {"calls": 1}}, "seconds": 2.0})
        first.note(1, {"actors": {"rollout": {"calls": 5}}, "seconds": 3.0})
    with again(tmp_path) as second:
        second.note(1, {"seconds": 9.0})
        assert [facts for _, _, facts in second.notes()] == [
            {"actors": {"trainer": {"calls": 1}, "rollout": {"calls": 5}}, "seconds": 3.0},
            {"seconds": 9.0},
        ]


def test_everything_is_there_in_the_next_life(tmp_path):
    with fresh(tmp_path) as first:
        run_steps(first, 2)
        first.append(parcel([4], step=3))
        first.record_evaluation(EVALUATION)
        then = first.facts()
    with again(tmp_path) as second:
        assert second.facts() == dataclasses.replace(then, lease=then.lease + 1)
        assert second.find(3, tensors(2))[0].digest == group(4, version=2).digest
        second.append(parcel([4, 5], step=3))
        second.close(report(3))
        assert second.evaluations() == (EVALUATION,) and len(second.reports()) == 3


def test_open_or_create_does_either(tmp_path):
    with Journal.open_or_create(tmp_path, **IDENTITY) as first:
        run_steps(first, 1)
    with Journal.open_or_create(tmp_path, **IDENTITY) as second:
        assert second.facts().rows == 2


def test_create_never_touches_a_journal_that_is_there(tmp_path):
    with fresh(tmp_path) as first:
        run_steps(first, 1)
    with pytest.raises(RecordError, match="already"):
        fresh(tmp_path)
    with again(tmp_path) as second:
        assert second.facts().rows == 2


def test_a_log_without_its_journal_is_not_built_over(tmp_path):
    (tmp_path / "journal.sqlite-wal").write_bytes(b"what is left of a run")
    with pytest.raises(RecordError, match=r"journal\.sqlite-wal"):
        Journal.open_or_create(tmp_path, **IDENTITY)


def test_a_creation_that_was_killed_leaves_nothing_in_the_way(tmp_path):
    (tmp_path / ".journal.sqlite.tmp").write_bytes(b"half a file")
    with fresh(tmp_path) as journal:
        assert journal.facts().rows == 0
    assert not (tmp_path / ".journal.sqlite.tmp").exists()


def test_a_missing_folder_and_a_missing_journal_are_named(tmp_path):
    with pytest.raises(RecordError, match="nowhere"):
        fresh(tmp_path / "nowhere")
    with pytest.raises(RecordError, match=r"journal\.sqlite"):
        again(tmp_path)


def test_a_second_writer_is_refused_with_who_writes(tmp_path):
    def second() -> None:
        with pytest.raises(RecordError, match="another run is writing"):
            again(tmp_path)

    with fresh(tmp_path) as first:
        second()
        assert in_a_child(second) == 0
        first.append(parcel([0]))
    with again(tmp_path) as third:
        assert third.facts().rows == 1


def test_a_refused_opening_leaves_the_lock_free(tmp_path):
    fresh(tmp_path).release()
    with pytest.raises(RecordError, match="another run"):
        Journal.open(tmp_path, **IDENTITY | {"run_id": "run-2"})
    again(tmp_path).release()


def test_a_writer_that_lost_its_lease_writes_nothing(tmp_path):
    first = fresh(tmp_path)
    run_steps(first, 1)
    (tmp_path / "lock").unlink()  # as if the two were on machines that do not see each other's locks
    with again(tmp_path) as second:
        before = second.facts()
        checkpoint = Checkpoint(step=1, folder="checkpoints/step-1", manifest_digest="m", scheduled=True)
        for write in (
            lambda: first.append(parcel([2], step=2)),
            lambda: first.close(report(1)),
            lambda: first.note(1, {"seconds": 1.0}),
            lambda: first.record_evaluation(EVALUATION),
            lambda: first.commit(checkpoint),
        ):
            with pytest.raises(RecordError, match="this lease ended"):
                write()
        assert second.facts() == before and second.checkpoints() == second.evaluations() == ()
        second.append(parcel([2], step=2))
    first.release()


def test_a_full_disk_is_named_and_earlier_groups_stay(journal, tmp_path):
    journal.append(parcel([0]))
    pages = journal.database.row("PRAGMA page_count")[0]
    journal.database.row(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(RecordError, match="no space left"):
        journal.append(parcel([1, 2], samples=8, width=2000))
    assert journal.facts().rows == 1 and len(journal.find(1, tensors(0))) == 1
    journal.database.row(f"PRAGMA max_page_count = {pages + 1000}")
    journal.append(parcel([1, 2]))
    assert journal.facts().rows == 3


def test_a_payload_changed_in_the_main_file_is_an_error_that_names_the_group(tmp_path):
    with fresh(tmp_path) as journal:
        journal.append(parcel([0, 1, 2]))
    path = tmp_path / "journal.sqlite"
    data = bytearray(path.read_bytes())
    place = data.index(b"answer 1.0")
    data[place] ^= 1
    path.write_bytes(bytes(data))
    with again(tmp_path) as journal, pytest.raises(RecordError, match=group(1).id):
        journal.find(1, tensors(0))


def test_a_payload_swapped_for_another_group_is_an_error(tmp_path):
    with fresh(tmp_path) as journal:
        journal.append(parcel([0, 1]))
    connection = sqlite3.connect(tmp_path / "journal.sqlite")
    with connection:
        connection.execute("UPDATE groups SET payload = (SELECT payload FROM groups WHERE position = 0)")
    connection.close()
    with again(tmp_path) as journal, pytest.raises(RecordError, match=group(1).id):
        journal.find(1, tensors(0))


def test_equal_runs_end_with_equal_facts_and_reports(tmp_path):
    heads = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with fresh(tmp_path / name) as journal:
            run_steps(journal, 3)
            heads.append((journal.facts(), journal.reports()))
    assert heads[0] == heads[1]


def test_facts_are_stored_as_given(journal):
    assert journal.meta()["experiment_facts"] == FACTS


CORRECTED = IDENTITY | {"experiment": "f" * 64, "experiment_facts": {**FACTS, "optim.lr": 0.01}}


def begun(run_dir, *, record=lambda journal: None) -> None:
    with fresh(run_dir) as journal:
        journal.note(0, {"seconds": 1.0})
        record(journal)


def test_a_first_start_that_recorded_nothing_does_not_hold_a_corrected_recipe(tmp_path):
    begun(tmp_path)
    with Journal.open_or_create(tmp_path, **CORRECTED) as journal:
        assert journal.meta() == CORRECTED and journal.notes() == ()
        journal.append(parcel([0]))
    Journal.open(tmp_path, **CORRECTED).release()
    with pytest.raises(RecordError, match=r"another experiment; optim.lr: recorded 0.01, now 0.001"):
        Journal.open_or_create(tmp_path, **IDENTITY)


@pytest.mark.parametrize(
    "record",
    [
        lambda journal: journal.append(parcel([0])),
        lambda journal: journal.record_evaluation(EVALUATION),
        lambda journal: journal.commit(Checkpoint(step=0, folder="a", manifest_digest="m", scheduled=True)),
    ],
    ids=["group", "evaluation", "checkpoint"],
)
def test_the_first_thing_recorded_holds_the_directory_to_its_experiment(tmp_path, record):
    begun(tmp_path, record=record)
    with pytest.raises(RecordError, match=r"another experiment; optim.lr"):
        Journal.open_or_create(tmp_path, **CORRECTED)
    assert again(tmp_path).meta() == IDENTITY


def test_an_empty_journal_is_not_given_to_another_run_or_taken_from_a_living_one(tmp_path):
    begun(tmp_path)
    with pytest.raises(RecordError, match="another run"):
        Journal.open_or_create(tmp_path, **CORRECTED | {"run_id": "run-2"})
    with again(tmp_path), pytest.raises(RecordError, match="another run is writing"):
        Journal.open_or_create(tmp_path, **CORRECTED)
    assert again(tmp_path).meta() == IDENTITY
