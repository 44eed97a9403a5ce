"""This file holds the journal's shell: it offers what the page calls, and building it costs nothing."""

from actors.journal import JournalActor, RunRecord
from miniverl.training.roles import Journal
from tests.actors.roles import differences


def test_the_shell_answers_every_call_of_the_role():
    assert differences(Journal, JournalActor) == []


def test_the_file_is_not_touched_before_the_start(plan, tmp_path):
    record = RunRecord(
        run_dir=plan.run_dir, run_id=plan.run_id, experiment=plan.experiment, experiment_facts=plan.experiment_facts
    )
    actor = JournalActor(record)
    assert not hasattr(actor, "_journal") and not list(tmp_path.iterdir())
