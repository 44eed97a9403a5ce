"""This file holds the five actors as a whole: equal to one process, and killed in every way."""

import contextlib
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
from miniverl.plan.compile import run_id
from miniverl.plan.plan import DeviceShare
from tests.ray_cluster import started
from tests.small_run import SMALL, STEPS, command, result_of

pytestmark = pytest.mark.slow

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
def untouched(shared_ray, tmp_path_factory) -> dict[str, str]:
    """The result of a run over actors that nobody disturbs."""
    run_dir = tmp_path_factory.mktemp("untouched") / "run"
    with started(*command("run", "quickstart", *SMALL, "-o", str(run_dir)), env={"RAY_ADDRESS": shared_ray.gcs}) as run:
        said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said
    return result_of(run_dir)


def test_one_process_and_five_actors_end_with_the_same_bytes(untouched, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [command()[0], "-c", ONE_PROCESS, str(tmp_path / "run"), *SMALL]
    subprocess.run(words, check=True, env=environment, timeout=300)
    assert result_of(tmp_path / "run") == untouched


WAYS = ("driver", "trainer", "rollout", "teacher", "journal", "controller", "ctrl-c")
"""What is killed in each life of the run, or how it is stopped."""


def test_a_run_killed_in_every_way_ends_with_the_bytes_of_the_untouched_one(attached, untouched, tmp_path):
    """Each life is disturbed one step further; the same command follows each time."""
    words = command("run", "quickstart", *SMALL, "-o", str(tmp_path / "run"))
    for life, way in enumerate(WAYS):
        with started(*words, env={"RAY_ADDRESS": attached.gcs}) as run:
            said = disturb(run, way, after=min(life, STEPS - 2), namespace=namespace_of(tmp_path / "run"))
        check_farewell(way, run.returncode, said)
    with started(*words, env={"RAY_ADDRESS": attached.gcs}) as run:
        said, _ = run.communicate(timeout=300)
    assert run.returncode == 0 and "continuing after step" in said, said
    assert result_of(tmp_path / "run") == untouched


def namespace_of(run_dir: Path) -> str:
    return f"miniverl-{run_id('quickstart', str(run_dir))}"


def disturb(run: subprocess.Popen, way: str, *, after: int, namespace: str) -> str:
    """Reads until the step after ``after`` is done, strikes, and returns everything said until the end."""
    said = []
    for line in run.stdout:
        said.append(line)
        found = re.match(r"step (\d+)/", line)
        if found and int(found[1]) == after + 1:
            strike(run, way, namespace)
    run.wait(timeout=60)
    return "".join(said)


def strike(run: subprocess.Popen, way: str, namespace: str) -> None:
    if way == "ctrl-c":  # a terminal signals the whole group
        os.killpg(run.pid, signal.SIGINT)
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(run.pid if way == "driver" else pid_of(way, namespace), signal.SIGKILL)


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
