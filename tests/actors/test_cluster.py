"""This file holds the five actors as a whole: equal to one process, and killed in every way."""

import json
import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import ray

from actors.cluster import Cluster
from miniverl.errors import PlacementError, RoleError
from miniverl.metrics.declared import GRAD_NORM, LOGP_DIFF_MAX
from miniverl.plan.compile import run_id
from miniverl.plan.plan import DeviceShare
from tests.ray_cluster import started
from tests.small_run import SMALL, command, result_of

pytestmark = pytest.mark.slow

LONGER = (*SMALL, "trainer.total_training_steps=24")
"""Room for every way to die."""

ONE_PROCESS = """
import sys
from miniverl.plan.compile import compile_plan
from miniverl.recipe.load import load_recipe
from miniverl.training.local import run_locally
run_locally(compile_plan(load_recipe("quickstart", sys.argv[2:]), run_dir=sys.argv[1]))
"""


def test_a_placement_that_cannot_fit_is_refused_with_its_numbers_before_any_actor_waits(attached, plan):
    wide = replace(plan, placement={**plan.placement, "trainer": DeviceShare(gpu=0.0, cpu=99.0, threads=1)})
    with pytest.raises(PlacementError, match="trainer 99") as caught:
        Cluster.create(wide)
    assert "8 CPUs" in str(caught.value)


def test_a_run_that_is_alive_is_not_started_again(attached, plan, monkeypatch):
    monkeypatch.setattr("actors.cluster.GONE", 0.0)
    cluster = Cluster.create(plan)
    try:
        with pytest.raises(RoleError, match="alive already"):
            Cluster.create(plan)
        assert not cluster.status().torch_loaded, "the controller holds no tensors"
    finally:
        cluster.kill()


@pytest.fixture(scope="module")
def twins(shared_ray, tmp_path_factory) -> list[dict[str, object]]:
    """Results of two runs over actors, at once on one Ray."""
    folders = [tmp_path_factory.mktemp("twin") / "run" for _ in range(2)]
    words = [command("run", "quickstart", *LONGER, "-o", str(folder)) for folder in folders]
    env = {"RAY_ADDRESS": shared_ray.gcs}
    with started(*words[0], env=env) as first, started(*words[1], env=env) as second:
        said = [run.communicate(timeout=300)[0] for run in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    return [result_of(folder) for folder in folders]


@pytest.fixture(scope="module")
def untouched(twins) -> dict[str, object]:
    return twins[0]


def test_two_runs_at_once_do_not_disturb_each_other(twins):
    assert twins[0] == twins[1]


def test_one_process_and_five_actors_end_with_the_same_bytes(untouched, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [command()[0], "-c", ONE_PROCESS, str(tmp_path / "run"), *LONGER]
    subprocess.run(words, check=True, env=environment, timeout=300)
    assert result_of(tmp_path / "run") == untouched


def test_a_student_in_four_bits_samples_from_its_own_policy_over_actors(shared_ray, tmp_path):
    folder = tmp_path / "run"
    words = (*SMALL, "models.student.quantization=nf4", "optim.lr=0.01", "trainer.total_training_steps=3")
    with started(*command("run", "quickstart", *words, "-o", str(folder)), env={"RAY_ADDRESS": shared_ray.gcs}) as run:
        said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if LOGP_DIFF_MAX.name in row]
    assert [row["step"] for row in steps] == [1, 2, 3]
    assert all(row[LOGP_DIFF_MAX.name] < 5e-5 and row[GRAD_NORM.name] > 0 for row in steps)


WAYS = ("ctrl-c", "driver", "trainer", "rollout", "teacher", "journal", "controller")
"""How the run is stopped, or what is killed, in each of its lives."""


def test_a_run_killed_in_every_way_ends_with_the_bytes_of_the_untouched_one(attached, untouched, tmp_path):
    """Each life is struck at the first step that no life before it had seen; the same command follows each time."""
    words, seen = command("run", "quickstart", *LONGER, "-o", str(tmp_path / "run")), 0
    for way in WAYS:
        with started(*words, env={"RAY_ADDRESS": attached.gcs}) as run:
            said = disturb(run, way, after=seen, namespace=namespace_of(tmp_path / "run"))
        check_farewell(way, run.returncode, said)
        seen = max(steps_in(said))
    with started(*words, env={"RAY_ADDRESS": attached.gcs}) as run:
        said, _ = run.communicate(timeout=300)
    assert run.returncode == 0 and "continuing after step" in said, said
    assert result_of(tmp_path / "run") == untouched


def steps_in(said: str) -> list[int]:
    return [int(number) for number in re.findall(r"^step (\d+)/", said, flags=re.MULTILINE)]


def namespace_of(run_dir: Path) -> str:
    return f"miniverl-{run_id('quickstart', str(run_dir))}"


def disturb(run: subprocess.Popen, way: str, *, after: int, namespace: str) -> str:
    """Strikes once a step beyond ``after`` is done; returns everything said until the end."""
    said, victim = [], 0
    for line in run.stdout:
        said.append(line)
        if not victim and steps_in(line):  # asked for early, so that the blow falls at once
            victim = run.pid if way in ("driver", "ctrl-c") else pid_of(way, namespace)
        if max(steps_in(line), default=0) > after:
            strike(victim, way)
            after = 10**9
    run.wait(timeout=60)
    return "".join(said)


def strike(victim: int, way: str) -> None:
    if way == "ctrl-c":  # a terminal signals the whole group
        os.killpg(victim, signal.SIGINT)
    else:
        os.kill(victim, signal.SIGKILL)


def pid_of(role: str, namespace: str) -> int:
    controller = ray.get_actor("controller", namespace=namespace)
    status = ray.get(controller.status.remote(), timeout=30)
    return status.process if role == "controller" else status.pulses[role].process


def check_farewell(way: str, code: int, said: str) -> None:
    assert "Traceback" not in said, said
    if way == "driver":
        assert code == -signal.SIGKILL
    elif way == "ctrl-c":
        assert code == 130 and "the same command continues" in said, said
    else:
        assert code == 1 and f"error: {way}: " in said and "the same command continues" in said, said
