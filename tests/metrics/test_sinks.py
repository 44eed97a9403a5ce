from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from miniverl.contract.report import Evaluation, StepReport
from miniverl.errors import ConfigError, RecordError
from miniverl.metrics.declared import ACCURACY, DISTILLATION_LOSS, GRAD_NORM, TIME_STEP
from miniverl.metrics.sinks import JsonlSink, Metrics, WandbRun, WandbSink

ROOT = Path(__file__).parents[2]
RUN = WandbRun(project="sums", name="quickstart", id="run-17", config={"lr": 1e-4})


def report(step: int, loss: float = 0.5) -> StepReport:
    return StepReport(
        step=step, updates=step, skipped=0, tensor_digest="d" * 64, metrics={DISTILLATION_LOSS.name: loss / step}
    )


def evaluation(step: int, accuracy: float, subject: str = "student") -> Evaluation:
    return Evaluation(
        subject=subject, step=step, accuracy=accuracy, n=64, truncated=0, mean_length=4.0, data_digest="e" * 64,
        tensor_digest="",
    )  # fmt: skip


def lines(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def live(path: Path, steps: range, reports: tuple[StepReport, ...] = (), evaluations: tuple[Evaluation, ...] = ()):
    """A life of a run that logs ``steps`` on top of what the journal holds."""
    metrics = Metrics([JsonlSink(path, reports, evaluations)])
    for step in steps:
        metrics.log(step, report(step).metrics)
    metrics.close()
    return path.read_bytes()


# metrics.jsonl


def test_jsonl_has_one_line_a_step(tmp_path: Path) -> None:
    live(tmp_path / "metrics.jsonl", range(1, 4))
    assert lines(tmp_path / "metrics.jsonl") == [
        {"step": step, DISTILLATION_LOSS.name: 0.5 / step} for step in (1, 2, 3)
    ]


@pytest.mark.parametrize("closed", range(4))
def test_a_resumed_run_writes_the_bytes_of_the_untouched_one(tmp_path: Path, closed: int) -> None:
    """Killed with ``closed`` steps in the journal, its file cut in the middle of a line; then all steps replay."""
    untouched = live(tmp_path / "untouched.jsonl", range(1, 4))
    resumed = tmp_path / "resumed.jsonl"
    resumed.write_bytes(untouched[: len(untouched) // 2])
    assert live(resumed, range(1, 4), tuple(report(step) for step in range(1, closed + 1))) == untouched


def test_a_line_is_on_disk_as_soon_as_it_is_logged(tmp_path: Path) -> None:
    sink = JsonlSink(tmp_path / "metrics.jsonl", ())
    sink.log(1, report(1).metrics)
    assert len(lines(tmp_path / "metrics.jsonl")) == 1


def test_evaluations_stand_in_the_row_of_their_step(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics([JsonlSink(path, ())])
    metrics.evaluated(evaluation(0, 0.93, subject="teacher"))
    metrics.evaluated(evaluation(0, 0.11))
    metrics.evaluated(evaluation(1, 0.42))
    metrics.log(1, report(1).metrics)
    assert [row.get(ACCURACY.name) for row in lines(path)] == [0.11, 0.42]
    recorded = (evaluation(0, 0.11), evaluation(0, 0.93, subject="teacher"), evaluation(1, 0.42))
    assert live(tmp_path / "again.jsonl", range(0), (report(1),), recorded) == path.read_bytes()


def test_an_evaluation_made_after_a_crash_joins_the_line_written_before_it(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = Metrics([JsonlSink(path, (report(1), report(2)))])
    metrics.evaluated(evaluation(2, 0.5))
    metrics.log(2, report(2).metrics)
    metrics.log(3, report(3).metrics)
    assert [row["step"] for row in lines(path)] == [1, 2, 3]
    assert [row.get(ACCURACY.name) for row in lines(path)] == [None, 0.5, None]


def test_what_may_differ_between_equal_runs_stays_out_of_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    Metrics([JsonlSink(path, ())]).log(1, {GRAD_NORM.name: 1.0, TIME_STEP.name: 3.2})
    assert lines(path) == [{"step": 1, GRAD_NORM.name: 1.0}]


def test_a_loss_that_is_not_finite_is_null_so_that_every_line_is_json(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    JsonlSink(path, ()).log(1, {DISTILLATION_LOSS.name: float("nan"), GRAD_NORM.name: float("inf")})
    assert lines(path) == [{"step": 1, DISTILLATION_LOSS.name: None, GRAD_NORM.name: None}]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"metrics\.jsonl: cannot be written: No such file.*run\.dir"):
        JsonlSink(tmp_path / "missing" / "metrics.jsonl", ())


def test_an_undeclared_metric_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="actor/distilation/loss"):
        Metrics([JsonlSink(tmp_path / "metrics.jsonl", ())]).log(1, {"actor/distilation/loss": 1.0})


# W&B: every life in a process of its own, as wandb keeps one service and one set of settings a process

LIFE = """
import json, os, sys
from miniverl.metrics.declared import DISTILLATION_LOSS
from miniverl.metrics.sinks import WandbRun, WandbSink

folder, steps, recorded, killed_after = json.loads(sys.argv[1])
row = {DISTILLATION_LOSS.name: 0.5}
run = WandbRun(project="sums", name="quickstart", id="run-17", config={"lr": 1e-4})
sink = WandbSink(run, folder=folder, environ=os.environ, recorded={step: row for step in recorded}, say=print)
for step in steps:
    sink.log(step, row)
    if step == killed_after:
        import psutil
        service = [child for child in psutil.Process().children(recursive=True) if child.name().startswith("wandb")]
        assert service
        for child in service:
            child.kill()
        psutil.wait_procs(service, timeout=10)
sink.close()
print("the run goes on to its end")
"""


def life(
    folder: Path, steps: list[int], *, recorded: list[int] | None = None, killed_after: int | None = None,
    **environ: str,
) -> list[str]:  # fmt: skip
    """What a run says on a machine that has never seen W&B, with ``environ`` set."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    clean |= {"HOME": str(folder), "NETRC": str(folder / "no-netrc"), "WANDB_ERROR_REPORTING": "false", **environ}
    arguments = json.dumps([str(folder), steps, recorded or [], killed_after])
    done = subprocess.run(
        [sys.executable, "-c", LIFE, arguments], cwd=ROOT, env=clean, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert said[-1] == "the run goes on to its end"
    return said


def history(folder: Path) -> list[dict[str, float]]:
    """Rows of the one offline run under ``folder``, read from W&B's own file."""
    from wandb.proto.wandb_internal_pb2 import Record

    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    rows = []
    for payload in _records(path.read_bytes()[7:]):
        record = Record.FromString(payload)
        if record.HasField("history"):
            values = {"/".join(item.nested_key) or item.key: item.value_json for item in record.history.item}
            rows.append({name: json.loads(value) for name, value in values.items() if name == "_step" or "/" in name})
    return rows


def _records(data: bytes):
    """Whole records of W&B's log: checksum, length, type, payload. Ours are short, hence never split."""
    at = 0
    while at + 7 <= len(data):
        length, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        assert kind == 1
        yield data[at + 7 : at + 7 + length]
        at += 7 + length


def test_without_a_key_wandb_logs_offline_says_so_and_takes_each_step_once(tmp_path: Path) -> None:
    said = life(tmp_path, [0, 1, 1, 2])
    assert history(tmp_path) == [{"_step": step, DISTILLATION_LOSS.name: 0.5} for step in (0, 1, 2)]
    assert "no API key was found" in said[0] and "offline" in said[0] and "WANDB_API_KEY" in said[0]


def test_a_resumed_offline_run_logs_only_what_is_new(tmp_path: Path) -> None:
    said = life(tmp_path, [1, 2, 3], recorded=[1, 2], WANDB_MODE="offline")
    assert not any("key" in line for line in said)  # nobody asked for the service
    assert [row["_step"] for row in history(tmp_path)] == [3]


def test_a_wandb_that_dies_does_not_end_the_run(tmp_path: Path) -> None:
    said = life(tmp_path, [1, 2, 3, 4], killed_after=1, WANDB_MODE="offline")
    assert "stopped" in said[-2] and "metrics.jsonl" in said[-2]


@pytest.mark.slow
def test_an_unreachable_service_is_said_and_the_rows_are_kept_offline(tmp_path: Path) -> None:
    said = life(tmp_path, [1], WANDB_API_KEY="0" * 40, WANDB_BASE_URL="http://127.0.0.1:9")
    assert "127.0.0.1:9" in said[0] and "offline" in said[0]
    assert [row["_step"] for row in history(tmp_path)] == [1]


def start(folder: Path, **environ: str) -> WandbSink:
    return WandbSink(RUN, folder=folder, environ=environ, recorded={}, say=print)


def test_a_disabled_wandb_does_nothing(tmp_path: Path) -> None:
    sink = start(tmp_path, WANDB_MODE="disabled")
    sink.log(1, report(1).metrics)
    sink.close()
    assert not list(tmp_path.iterdir())


def test_an_unknown_mode_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"WANDB_MODE = 'onlin'.*online, offline"):
        start(tmp_path, WANDB_MODE="onlin")


def test_a_missing_wandb_is_named_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"tracking\.sinks = 'wandb'.*not installed.*pip install wandb"):
        start(tmp_path)


def test_the_environment_names_the_wandb_run() -> None:
    environ = {"WANDB_PROJECT": "theirs", "WANDB_NAME": "n", "WANDB_RUN_ID": "id-9", "WANDB_ENTITY": "team"}
    assert RUN.honouring(environ) == WandbRun(project="theirs", name="n", id="id-9", config=RUN.config)
    assert RUN.honouring({"WANDB_NAME": ""}) == RUN


def test_importing_the_sinks_loads_neither_wandb_nor_torch() -> None:
    check = "import sys, miniverl.metrics.sinks; assert not {'wandb', 'torch'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", check], check=True, cwd=ROOT)
