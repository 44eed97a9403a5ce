"""This file holds the two ways to run a recipe as a job of a running Ray."""

import json
import os
import sys
import time
from pathlib import Path

import pytest
from ray.util.state import list_actors

from miniverl.data.sample import write_sample
from tests.ray_cluster import SharedRay, started
from tests.small_run import SMALL, command, result_of

ROLES = {"controller", "trainer", "rollout", "teacher", "journal"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def submitted(shared_ray, tmp_path_factory) -> dict[str, object]:
    """What a run by ``miniverl submit --wait`` ended with, and the actors seen by name while it ran. Its recipe names
    files from the folder of the shell."""
    folder = tmp_path_factory.mktemp("submitted")
    files = [*write_sample(folder / "sums", rows=128, seed=0)]
    words = (*SMALL, f"data.train_files={files[0].relative_to(folder)}", "--address", shared_ray.jobs, "--wait")
    with started(*command("submit", "quickstart", *words, "-o", "run"), cwd=folder) as job:
        seen = actors_of(shared_ray, job)
        said, _ = job.communicate(timeout=300)
    assert job.returncode == 0, said
    return {"said": said, "seen": seen, "result": result_of(folder / "run"), "file": files[0]}


def actors_of(there: SharedRay, job) -> set[str]:
    """Names of the living actors of one namespace, once all are there or the job is over."""
    names: set[str] = set()
    while job.poll() is None and not names >= ROLES:
        living = list_actors(address=there.jobs, filters=[("state", "=", "ALIVE")])
        names = {actor.name for actor in living if actor.ray_namespace.startswith("miniverl-")}
        time.sleep(0.2)  # the state API is asked over HTTP
    return names


def test_all_actors_of_a_job_are_visible_by_name_while_it_runs(submitted):
    assert submitted["seen"] >= ROLES


def test_the_terminal_learns_how_to_follow_and_sees_the_output(submitted):
    assert "ray job logs --address" in submitted["said"] and "student after" in submitted["said"]


def test_plain_ray_job_submit_runs_the_same_recipe_to_the_same_bytes(shared_ray, submitted, tmp_path):
    environment = json.dumps({"env_vars": {"PYTHONPATH": str(Path(__file__).parents[2]), "HF_HUB_OFFLINE": "1"}})
    ray_command = Path(sys.executable).with_name("ray")
    options = ("job", "submit", "--address", shared_ray.jobs, "--runtime-env-json", environment, "--")
    data = f"data.train_files={submitted['file']}"
    words = (*options, *command("run", "quickstart", *SMALL, data, "-o", str(tmp_path / "run")))
    with started(str(ray_command), *words, env={"RAY_AUTH_MODE": "token"}) as job:
        said, _ = job.communicate(timeout=300)
    assert job.returncode == 0, said
    assert result_of(tmp_path / "run") == submitted["result"]


def test_a_job_that_fails_fails_the_command_that_waits(shared_ray, tmp_path):
    run_dir = tmp_path / "file"
    run_dir.write_text("not a folder")
    words = command("submit", "quickstart", *SMALL, "--address", shared_ray.jobs, "--wait", "-o", str(run_dir))
    with started(*words) as job:
        said, _ = job.communicate(timeout=120)
    assert job.returncode == 2 and f"error: {os.fspath(run_dir)}" in said, said
