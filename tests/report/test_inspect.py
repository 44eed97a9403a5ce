"""This file holds the behaviour of inspection: everything from the run directory, nothing written into it."""

import json
import math
import sqlite3

import pytest

from miniverl.contract.canonical import json_digest
from miniverl.contract.report import Checkpoint, Evaluation
from miniverl.errors import RecordError
from miniverl.record.export import publish
from miniverl.report.inspect import FINISHED, INTERRUPTED, RUNNING, as_json, inspect_run, render
from tests.record.drawn import IDENTITY, again, fresh, parcel, report, run_steps, tensors

PLAN = {"name": "tiny", "schedule": {"total_training_steps": 3}, "execution_facts": {"threads": 1}}


def evaluation(subject: str, step: int, accuracy: float) -> Evaluation:
    return Evaluation(
        subject=subject, step=step, accuracy=accuracy, n=100, truncated=0, mean_length=4.0, data_digest="d",
        tensor_digest=f"{step}",
    )  # fmt: skip


def counters(busy: float, calls: int, rss: int) -> dict[str, float]:
    return {"busy_seconds": busy, "calls": calls, "peak_rss": rss}


@pytest.fixture
def run_dir(tmp_path):
    """Two steps of three in a first life, one group more in a second."""
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    with fresh(tmp_path) as journal:
        for one in (evaluation("teacher", 0, 0.99), evaluation("student", 0, 0.1), evaluation("student", 1, 0.4)):
            journal.record_evaluation(one)
        run_steps(journal, 2)
        journal.commit(Checkpoint(step=2, folder="checkpoints/step-2", manifest_digest="m", scheduled=True))
        journal.note(1, {"actors": {"trainer": counters(2.0, 3, 500), "rollout": counters(1.0, 1, 900)}})
        journal.note(2, {"actors": {"trainer": counters(4.0, 6, 700)}})
    with again(tmp_path) as journal:
        journal.record_evaluation(evaluation("student", 2, 0.8))
        journal.append(parcel([4], step=3))
        journal.note(2, {"actors": {"trainer": counters(1.5, 2, 600)}})
    return tmp_path


def test_a_run_is_told_in_json(run_dir):
    found = inspect_run(run_dir)
    assert json.loads(json.dumps(found)) == found
    assert (found["name"], found["run_id"], found["state"]) == ("tiny", "run-1", INTERRUPTED)
    assert found["digests"] == {"experiment": IDENTITY["experiment"], "execution": json_digest({"threads": 1})}
    assert found["steps"] == {"done": 2, "total": 3}
    assert (found["cursor"], found["rows"], found["updates"], found["metrics"]) == (4, 5, 2, {"loss": 0.5})
    assert [one["folder"] for one in found["checkpoints"]] == ["checkpoints/step-2"]


def test_before_is_step_zero_and_after_is_the_latest(run_dir):
    found = inspect_run(run_dir)["evaluation"]
    assert {name: (one["accuracy"], one["n"]) for name, one in found.items()} == {
        "teacher": (0.99, 100), "student_before": (0.1, 100), "student_after": (0.8, 100),
    }  # fmt: skip


def test_the_counters_of_actors_are_summed_over_the_lives_of_the_run(run_dir):
    assert inspect_run(run_dir)["actors"] == {
        "rollout": {"busy_seconds": 1.0, "calls": 1, "peak_rss": 900},
        "trainer": {"busy_seconds": 5.5, "calls": 8, "peak_rss": 700},
    }


def test_what_the_probes_found_is_told_life_by_life(run_dir):
    figures = {"tokens": 32, "max": 1e-6, "mean": 1e-7, "p99": 1e-6, "k3": 1e-14, "probability": 1e-8}
    probe = {"engine": figures, "floor": figures, "unlikeliest": 0, "temperature": 1.0, "top_p": 1.0, "top_k": 0}
    found = {"version": 2, "outcome": "pass", "sampled": probe, "greedy": probe}
    assert inspect_run(run_dir)["conformance"] == []
    with again(run_dir) as journal:
        journal.note(2, {"conformance": found})
    assert inspect_run(run_dir)["conformance"] == [found]
    [line] = [line for line in render(inspect_run(run_dir)) if line.startswith("conformance")]
    assert "version 2: pass, 32 tokens, log-probs differ by 1e-06 at most" in line


def test_a_run_is_running_while_its_writer_lives_and_finished_once_it_exported(run_dir):
    with again(run_dir) as journal:
        assert inspect_run(run_dir)["state"] == RUNNING
        journal.append(parcel([5], step=3))
        journal.close(report(3))
    assert inspect_run(run_dir)["state"] == INTERRUPTED
    weights = "adapter_model.safetensors"
    (run_dir / "final").mkdir()
    (run_dir / "final" / weights).write_bytes(b"half")  # what a kill may leave without a mark
    assert inspect_run(run_dir)["state"] == INTERRUPTED
    publish(run_dir / "final", lambda f: (f / weights).write_bytes(b"2"), step=2, tensor_digest=tensors(2))
    assert inspect_run(run_dir)["state"] == INTERRUPTED
    publish(run_dir / "final", lambda f: (f / weights).write_bytes(b"3"), step=3, tensor_digest=report(3).tensor_digest)
    assert inspect_run(run_dir)["state"] == FINISHED


def test_a_run_that_has_only_begun_is_told_too(tmp_path):
    with fresh(tmp_path):
        found = inspect_run(tmp_path)
    assert found["steps"] == {"done": 0, "total": None} and found["evaluation"] == found["actors"] == {}
    assert found["name"] == tmp_path.name
    assert any("0 of ?" in line for line in render(found))


def test_what_is_no_run_is_refused_by_name(tmp_path):
    with pytest.raises(RecordError, match="nowhere"):
        inspect_run(tmp_path / "nowhere")
    with pytest.raises(RecordError, match="no journal"):
        inspect_run(tmp_path)
    (tmp_path / "journal.sqlite").write_bytes(b"")
    with pytest.raises(RecordError, match="empty file"):
        inspect_run(tmp_path)


def test_the_text_says_what_the_json_says(run_dir):
    text = "\n".join(render(inspect_run(run_dir)))
    for part in (
        "tiny (run-1): interrupted",
        "2 of 3",
        "99.00% of 100",
        "student after",
        "80.00%",
        "5.5 s busy",
        "loss",
    ):
        assert part in text


def test_inspection_changes_nothing(run_dir):
    before = {path.name: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}
    inspect_run(run_dir)
    after = {path.name: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}
    assert {name: after[name] for name in before} == before


def test_numbers_that_json_cannot_hold_are_written_by_their_names(tmp_path):
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    with fresh(tmp_path) as journal:
        journal.append(parcel([0]))
        journal.close(report(1, metrics={"loss": math.nan, "norm": math.inf, "fine": 0.5}))
    facts = inspect_run(tmp_path)
    found = json.loads(as_json(facts), parse_constant=refuse)
    assert found["metrics"] == {"loss": "nan", "norm": "inf", "fine": 0.5}
    assert any(line.endswith("loss = nan") for line in render(facts))


@pytest.mark.parametrize("text", ["[]", '{"schedule": 3}', '{"schedule": {"total_training_steps": "x"}}'])
def test_a_plan_of_odd_content_is_named(run_dir, text):
    (run_dir / "plan.json").write_text(text)
    with pytest.raises(RecordError, match=r"plan.json: is not a plan"):
        inspect_run(run_dir)


def test_a_journal_without_its_lease_is_named(run_dir):
    with sqlite3.connect(run_dir / "journal.sqlite") as connection:
        connection.execute("DELETE FROM lease")
    with pytest.raises(RecordError, match=r"journal.sqlite: is damaged: its table lease"):
        inspect_run(run_dir)
