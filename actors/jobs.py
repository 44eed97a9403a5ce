"""This file holds Job: a run handed to a running Ray through its job API."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from actors.environment import forwarded
from miniverl.errors import RoleError

FAILED = 1
"""Exit code of a job whose driver left none: it never started, or was stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: str
    address: str
    """Of the job API."""


def submit_run(words: Sequence[str], *, address: str, shell: Mapping[str, str]) -> Job:
    """Starts ``miniverl run`` with these words as a job. Its driver starts in a folder of Ray's, so paths are absolute.

    Raises RoleError when no job API answers at ``address``.
    """
    client, address = _client(address)
    command = shlex.join([sys.executable, "-m", "miniverl", "run", *words])
    return Job(id=client.submit_job(entrypoint=command, runtime_env={"env_vars": forwarded(shell)}), address=address)


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
    """The client, and the address it found: host:port of a cluster has its job API somewhere else."""
    from ray.job_submission import JobSubmissionClient

    try:
        client = JobSubmissionClient(address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise RoleError(
            "--address", value=address, problem=f"no job API answers there ({' '.join(str(error).split())[:200]})",
            fix="start Ray with its dashboard (ray start --head), or name the address it printed",
        ) from None  # fmt: skip
    return client, client.get_address()
