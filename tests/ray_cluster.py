"""This file holds the Ray that slow tests share: started once a session with its own ports, ended by its own handle."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "token")
"""Ray reads it when it is imported, and the shared Ray wants its token, which Ray made for this user."""

KEEPER = Path(__file__).with_name("keeper.py")


@dataclass(frozen=True)
class SharedRay:
    gcs: str
    """host:port, what RAY_ADDRESS names."""
    jobs: str
    """http address of the job and state API."""


@pytest.fixture(scope="session")
def shared_ray() -> Iterator[SharedRay]:
    keeper = subprocess.Popen(
        [sys.executable, str(KEEPER)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=KEEPER.parents[1],
    )  # fmt: skip
    try:
        yield SharedRay(**json.loads(keeper.stdout.readline()))
    finally:
        keeper.stdin.close()
        keeper.wait(timeout=90)


@pytest.fixture(scope="module")
def attached(shared_ray: SharedRay) -> Iterator[SharedRay]:
    """This process as a driver of the shared Ray, for tests that create actors themselves."""
    import ray

    root = str(KEEPER.parents[1])
    ray.init(address=shared_ray.gcs, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": root}})
    try:
        yield shared_ray
    finally:
        ray.shutdown()


@contextlib.contextmanager
def started(*words: str, env: dict[str, str] | None = None, cwd: Path | None = None) -> Iterator[subprocess.Popen]:
    """A process of a test, in a group of its own and with a user's environment: it finds the token by itself.

    Whatever is left of the group ends with the block.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "RAY_AUTH_MODE"}
    environment = {**inherited, "PYTHONPATH": str(KEEPER.parents[1]), **(env or {})}
    process = subprocess.Popen(
        words, env=environment, cwd=cwd or KEEPER.parents[1], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()
