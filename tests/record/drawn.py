"""This file holds groups, parcels and journals for the tests of the record, drawn from their position alone."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from miniverl.contract.group import Group
from miniverl.contract.parcel import KEPT, Parcel
from miniverl.contract.report import StepReport
from miniverl.record.journal import Journal

CLONE_NEWNS, MS_REMOUNT, MS_REC, MS_PRIVATE = 0x20000, 32, 0x4000, 1 << 18
"""Of Linux, as its headers number them."""

FACTS = {"optim.lr": 0.001, "model.path": "student", "seed": 7}
IDENTITY: dict[str, Any] = {"run_id": "run-1", "experiment": "e" * 64, "experiment_facts": FACTS}


def tensors(version: int) -> str:
    """The digest of the trainable tensors of a policy version."""
    return f"{version:064x}"


def group(cursor: int, *, version: int = 0, samples: int = 2, width: int = 3, **changes: Any) -> Group:
    """A group whose content follows from its arguments."""
    random = np.random.default_rng((cursor, version))
    columns: dict[str, Any] = {
        "id": f"{cursor:012d}-abc",
        "cursor": cursor,
        "policy_version": version,
        "snapshot_digest": "5" * 64,
        "tensor_digest": tensors(version),
        "prompt_row": cursor % 3,
        "prompt_digest": "9" * 64,
        "prompt_ids": random.integers(0, 50, 4),
        "data_source": "sums",
        "ground_truth": "42",
        "seeds": random.integers(0, 2**63, samples),
        "lengths": random.integers(1, width + 1, samples),
        "token_ids": random.integers(0, 50, (samples, width)),
        "logps": random.normal(size=(samples, width)),
        "behaviour_logps": None,
        "temperature": 1.0,
        "stop_reasons": ("stop_token",) * samples,
        "stop_matches": ("2",) * samples,
        "texts": tuple(f"answer {cursor}.{row}" for row in range(samples)),
    }
    return Group(**columns | changes)


def parcel(cursors: Iterable[int], *, step: int = 1, fate: str = KEPT, **changes: Any) -> Parcel:
    groups = tuple(group(cursor, version=step - 1, **changes) for cursor in cursors)
    return Parcel(step=step, groups=groups, fates=(fate,) * len(groups))


def report(step: int, **changes: Any) -> StepReport:
    return StepReport(
        **{"step": step, "updates": step, "skipped": 0, "tensor_digest": tensors(step), "metrics": {"loss": 0.5}}
        | changes
    )


def run_steps(journal: Journal, steps: int, *, groups: int = 2) -> None:
    """Records and closes steps 1..steps."""
    for step in range(1, steps + 1):
        journal.append(parcel(range((step - 1) * groups, step * groups), step=step))
        journal.close(report(step))


def fresh(run_dir: Path) -> Journal:
    return Journal.create(run_dir, **IDENTITY)


def again(run_dir: Path) -> Journal:
    return Journal.open(run_dir, **IDENTITY)


def in_a_child(work: Callable[[], None]) -> int:
    """Runs ``work`` in a forked process. Returns its exit code, or minus the signal that ended it."""
    child = os.fork()
    if not child:
        code = 70
        try:
            work()
            code = 0
        finally:
            os._exit(code)  # neither the tests' own cleaning up nor their reports belong to the child
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def as_somebody_else() -> None:
    """Gives up the rights of the superuser, where the tests run as it, for good: only in a child."""
    if os.geteuid() == 0:
        os.setuid(65534)


def die() -> int:
    """Ends this process as a power cut would: nothing is flushed, closed or rolled back."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def on_a_small_disk(folder: Path, size: int, work: Callable[[Callable[[], None]], None]) -> int:
    """Runs ``work`` in a child whose ``folder`` is a file system of ``size`` bytes; ends as ``in_a_child`` does.

    ``work`` is given what to call to make the disk large. The file system is the child's own: nothing is left to
    unmount. Where a process may not have one, no file can outgrow ``size`` instead.
    """
    folder.mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)

    def mount(flags: int, options: str) -> None:
        assert libc.mount(b"none", bytes(folder), b"tmpfs", flags, options.encode()) == 0, ctypes.get_errno()

    def limit(most: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def on_it() -> None:
        if libc.unshare(CLONE_NEWNS) == 0 and libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0:
            mount(0, f"size={size}")
            work(lambda: mount(MS_REMOUNT, "size=16m"))
        else:
            limit(size)
            work(lambda: limit(resource.RLIM_INFINITY))

    return in_a_child(on_it)
