"""This file holds Job: a run handed to a running Ray through its job API."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from actors.address import dead, token_mode
from actors.environment import forwarded, ray_settings

FAILED = 1
"""Exit code of a job whose driver left none: it never started, or was stopped."""


AGENT, NO_AGENT = 60.0, "No available agent"
"""A Ray that was just started takes some seconds until it takes jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: str
    address: str
    """Of the job API."""


def submit_run(words: Sequence[str], *, address: str, shell: Mapping[str, str]) -> Job:
    """Starts ``miniverl run`` with these words as a job, in this folder, so that relative paths mean the same there.

    Raises RoleError when no job API answers at ``address``.
    """
    for name, setting in (ray_settings(own=False) | token_mode(urlsplit(address).hostname or "", shell)).items():
        os.environ.setdefault(name, setting)
    client, address = _client(address)
    command = entrypoint(words, folder=os.getcwd())
    deadline = time.monotonic() + AGENT
    while True:
        try:
            id = client.submit_job(entrypoint=command, runtime_env={"env_vars": forwarded(shell)})
        except RuntimeError as error:
            if NO_AGENT not in str(error) or time.monotonic() > deadline:
                raise dead("--address", address, f"the job was not taken: {_one_line(error)}") from None
            time.sleep(1.0)
        else:
            return Job(id=id, address=address)


def entrypoint(words: Sequence[str], *, folder: str) -> str:
    """A line for a shell. Ray starts jobs in a folder of its own; ``exec`` leaves the signals to our driver."""
    return f"cd {shlex.quote(folder)} && exec {shlex.join([sys.executable, '-m', 'miniverl', 'run', *words])}"


def follow(job: Job, *, write: Callable[[str], None]) -> int:
    """Writes the job's output as it comes; returns the exit code of its driver."""
    client, _ = _client(job.address)

    async def tail() -> None:
        async for lines in client.tail_job_logs(job.id):
            write(lines)

    asyncio.run(tail())
    info = client.get_job_info(job.id)
    return FAILED if info.driver_exit_code is None else info.driver_exit_code


def _client(address: str):
    """The client, and the address it settled on."""
    from ray.exceptions import RayError
    from ray.job_submission import JobSubmissionClient

    try:
        client = JobSubmissionClient(address)
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        raise dead("--address", address, f"no job API answers there: {_one_line(error)}") from None
    return client, client.get_address()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
