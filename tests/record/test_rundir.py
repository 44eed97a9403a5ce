"""This file holds the behaviour of the run directory: where things lie, and what stands in the way of a run."""

import errno
import json
import math
import os
import tempfile
from dataclasses import dataclass

import pytest

from miniverl.errors import RecordError
from miniverl.record.rundir import RunDirectory
from tests.record.drawn import as_somebody_else, fresh, in_a_child


@dataclass(frozen=True)
class Slice:
    clip_grad: float
    betas: tuple[float, float]


@dataclass(frozen=True)
class SmallPlan:
    name: str
    optim: Slice


def test_a_directory_is_prepared_with_its_parents_and_again(tmp_path):
    made = RunDirectory.prepare(tmp_path / "runs" / "one")
    assert made == RunDirectory.prepare(tmp_path / "runs" / "one")
    assert made.root.is_absolute() and made.checkpoints.is_dir() and made.logs.is_dir()


def test_everything_of_a_run_lies_inside_it(tmp_path):
    made = RunDirectory.prepare(tmp_path)
    for path in (
        made.journal,
        made.lock,
        made.metrics,
        made.plan,
        made.final,
        made.checkpoints,
        made.logs,
    ):
        assert made.root in path.parents
    assert made.inside("final/adapter") == made.root / "final" / "adapter"
    with pytest.raises(RecordError, match="leads out"):
        made.inside("../elsewhere")


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(RecordError, match="a file stands where a folder must be"):
        RunDirectory.prepare(tmp_path / "run")
    with pytest.raises(RecordError, match="not a run directory"):
        RunDirectory.existing(tmp_path / "run")


def test_no_permission_is_named_with_what_to_do():
    def refused() -> None:
        as_somebody_else()
        with pytest.raises(RecordError, match="permission denied"):
            RunDirectory.prepare("/")

    assert in_a_child(refused) == 0


def test_only_a_started_run_exists(tmp_path):
    with pytest.raises(RecordError, match="does not exist"):
        RunDirectory.existing(tmp_path / "nowhere")
    with pytest.raises(RecordError, match="no journal"):
        RunDirectory.existing(tmp_path)
    fresh(tmp_path).release()
    assert RunDirectory.existing(tmp_path).root == tmp_path.resolve()


def test_a_plan_is_written_as_json_with_the_numbers_json_cannot_hold_by_name(tmp_path):
    directory = RunDirectory.prepare(tmp_path)
    assert directory.read_plan() == {}
    directory.record_plan(SmallPlan(name="tiny", optim=Slice(clip_grad=math.inf, betas=(0.9, 0.999))))
    assert directory.read_plan() == {"name": "tiny", "optim": {"clip_grad": "inf", "betas": [0.9, 0.999]}}
    assert json.loads(directory.plan.read_bytes()) == directory.read_plan()


def test_a_plan_that_is_not_json_is_named(tmp_path):
    directory = RunDirectory.prepare(tmp_path)
    directory.plan.write_text("{")
    with pytest.raises(RecordError, match=r"plan\.json"):
        directory.read_plan()


@pytest.mark.parametrize("text", ["[]", "3", '{"schedule": 3}', '{"execution_facts": []}', "{", "[" * 100_000])
def test_a_plan_that_is_none_is_refused_by_name(tmp_path, text):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(RecordError, match=r"plan.json: is not"):
        RunDirectory.prepare(tmp_path).read_plan()


@pytest.mark.parametrize("method", [RunDirectory.prepare, RunDirectory.existing])
@pytest.mark.parametrize("path", ["~nobody-of-that-name/x", "x" * 300, "a\0b"])
def test_a_path_that_cannot_be_one_is_refused(method, path):
    with pytest.raises(RecordError):
        method(path)


@pytest.mark.parametrize("method", [RunDirectory.prepare, RunDirectory.existing])
def test_a_parent_that_may_not_be_entered_is_named(method):
    with tempfile.TemporaryDirectory() as closed:  # that pytest's own folders are closed to others, is not the test
        os.chmod(closed, 0)

        def refused() -> None:
            as_somebody_else()
            with pytest.raises(RecordError, match=f"{closed}.*: permission denied"):
                method(f"{closed}/run")

        assert in_a_child(refused) == 0
        os.chmod(closed, 0o700)


def test_a_read_only_disk_is_told_from_a_lack_of_permission(tmp_path, monkeypatch):
    made = RunDirectory.prepare(tmp_path)
    fresh(tmp_path).release()

    def read_only(path, flags, *rest):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(RecordError, match="read-only"):
        RunDirectory.prepare(tmp_path)
    assert RunDirectory.existing(tmp_path) == made


def test_preparing_leaves_no_trace_of_its_probe_and_sees_a_file_in_the_results_place(tmp_path):
    RunDirectory.prepare(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["checkpoints", "logs"]
    (tmp_path / "final").write_text("mine")
    with pytest.raises(RecordError, match="final: a file stands"):
        RunDirectory.prepare(tmp_path)
