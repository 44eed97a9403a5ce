"""This file holds the behaviour at a journal's door: another run's journal, or a damaged one, is refused by name."""

import shutil
import sqlite3

import numpy as np
import pytest

from miniverl.errors import RecordError
from miniverl.record.checkpoint import write_checkpoint
from miniverl.record.journal import Journal
from tests.record.drawn import FACTS, IDENTITY, again, fresh, parcel, report, run_steps


@pytest.fixture
def recorded(tmp_path):
    """A run of two steps, released."""
    with fresh(tmp_path) as journal:
        run_steps(journal, 2)
    return tmp_path


def change(run_dir, statement: str) -> None:
    connection = sqlite3.connect(run_dir / "journal.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()


def test_another_run_is_refused(recorded):
    with pytest.raises(RecordError, match="run-2"):
        Journal.open(recorded, **IDENTITY | {"run_id": "run-2"})


def test_another_experiment_is_refused_with_the_fields_that_differ(recorded):
    facts = {**FACTS, "optim.lr": 0.01, "rollout.n": 4}
    del facts["seed"]
    with pytest.raises(RecordError) as refused:
        Journal.open(recorded, run_id="run-1", experiment="f" * 64, experiment_facts=facts)
    text = str(refused.value)
    assert "optim.lr: recorded 0.001, now 0.01" in text
    assert "rollout.n: recorded (not set), now 4" in text and "seed: recorded 7, now (not set)" in text
    assert "model.path" not in text


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM groups WHERE position = 1",
        "UPDATE groups SET digest = '" + "f" * 64 + "' WHERE position = 2",
        "UPDATE groups SET chain = '" + "f" * 64 + "' WHERE position = 0",
        "DELETE FROM groups WHERE position = 3",
        "DELETE FROM steps WHERE step = 1",
    ],
)
def test_a_record_that_was_tampered_with_is_refused(recorded, statement):
    change(recorded, statement)
    with pytest.raises(RecordError, match="damaged"):
        again(recorded)


def save(run_dir, journal, step: int) -> None:
    write_checkpoint(
        run_dir, step=step, facts=journal.facts_at(step), tensors={"a.safetensors": {"w": np.zeros(2)}}, metadata={},
        scheduled=True,
    )  # fmt: skip


def test_a_journal_shorter_than_a_checkpoint_is_refused_by_name_and_not_extended(recorded):
    shutil.copy(recorded / "journal.sqlite", recorded / "older")
    with again(recorded) as journal:
        journal.append(parcel([4, 5], step=3))
        journal.close(report(3))
        save(recorded, journal, 3)
    shutil.copy(recorded / "older", recorded / "journal.sqlite")
    before = (recorded / "journal.sqlite").read_bytes()
    with pytest.raises(RecordError, match="holds 4 groups, but checkpoint step-3 was made when it held 6"):
        again(recorded)
    assert (recorded / "journal.sqlite").read_bytes() == before


def test_a_journal_with_other_groups_than_a_checkpoint_saw_is_refused(recorded, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    with fresh(other) as journal:
        journal.append(parcel([0, 1], samples=3))
        journal.close(report(1))
        save(recorded, journal, 1)
    with pytest.raises(RecordError, match="other groups than when checkpoint step-1"):
        again(recorded)


def test_a_journal_goes_on_beside_its_own_checkpoints(recorded):
    with again(recorded) as journal:
        save(recorded, journal, 2)
        save(recorded, journal, 1)
        journal.append(parcel([4], step=3))
    again(recorded).release()


@pytest.mark.parametrize(
    ("table", "statement"),
    [
        ("steps", "UPDATE steps SET report = '{'"),
        ("meta", "DELETE FROM meta WHERE name = 'experiment_facts'"),
        ("meta", "DELETE FROM meta WHERE name = 'run_id'"),
        ("meta", "UPDATE meta SET value = '3' WHERE name = 'experiment_facts'"),
        ("lease", "DELETE FROM lease"),
        ("notes", "INSERT INTO notes VALUES (1, 1, 'x')"),
    ],
)
def test_a_row_that_cannot_be_read_names_its_table(recorded, table, statement):
    change(recorded, statement)
    with pytest.raises(RecordError, match=f"table {table}"), again(recorded) as journal:
        journal.reports()
        journal.notes()


def test_a_journal_that_is_gone_is_missed_because_of_its_checkpoints_and_not_made_anew(recorded):
    with again(recorded) as journal:
        save(recorded, journal, 2)
    (recorded / "journal.sqlite").unlink()
    with pytest.raises(RecordError, match="is missing, but checkpoint step-2 was made when it held 4 groups"):
        Journal.open_or_create(recorded, **IDENTITY)
    assert not (recorded / "journal.sqlite").exists()


def test_an_emptied_journal_is_not_restated_beside_checkpoints(recorded):
    with again(recorded) as journal:
        save(recorded, journal, 2)
    for table in ("groups", "steps"):
        change(recorded, f"DELETE FROM {table}")
    with pytest.raises(RecordError, match="holds 0 groups, but checkpoint step-2"):
        Journal.open_or_create(recorded, **IDENTITY | {"experiment": "f" * 64})
    change(recorded, "DELETE FROM lease")
    with pytest.raises(RecordError, match=r"journal.sqlite: is damaged: its table lease cannot be read"):
        again(recorded)
