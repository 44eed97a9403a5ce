"""This file holds the drive: one run over actors from the first line to the last, as the driver sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.address import knock
from actors.environment import named_address, ray_settings, settled
from miniverl.contract.event import NOTE, Event
from miniverl.errors import RecordError, RoleError
from miniverl.plan.plan import Plan
from miniverl.record.files import write_atomically
from miniverl.record.rundir import RunDirectory

if TYPE_CHECKING:
    from actors.cluster import Cluster

Say = Callable[[Event], None]


def run_over_actors(plan: Plan, *, say: Say) -> None:
    """Runs the plan to its end. Starts nothing it does not end: actors and a Ray of our own are gone afterwards.

    Raises Stopped after a first SIGINT (the last closed step is in a checkpoint), KeyboardInterrupt after a second,
    SystemExit after SIGTERM, RoleError for a lost role, or what a role raised.
    """
    _refuse_unless_resumable(plan)
    with settled(_settings(plan)):
        _run(plan, say)


def _run(plan: Plan, say: Say) -> None:
    from actors.cluster import Cluster
    from actors.interrupts import Interrupts
    from actors.session import ray_session

    directory = RunDirectory.prepare(plan.run_dir)
    with ray_session(plan) as own:
        say(Event(kind=NOTE, text="Ray started for this run" if own else "attached to a running Ray"))
        cluster = Cluster.create(plan)
        try:
            cluster.start(say)
            say_what_differs(plan, directory, say)
            directory.record_plan(plan)  # only now: the journal has agreed that this is the run's experiment
            with Interrupts() as interrupts:
                _follow(cluster, lambda: interrupts.wished, say)
        except RoleError as error:
            _keep_traceback(error, directory, say)
            raise
        finally:
            cluster.kill()


def _refuse_unless_resumable(plan: Plan) -> None:
    """``run.resume: never`` forbids a directory that holds a run."""
    if plan.resume == "never" and holds_run(plan.run_dir):
        raise RecordError(
            plan.run_dir, problem="holds a run, and run.resume is never",
            fix="set another run.dir, or run.resume=auto to continue it",
        )  # fmt: skip


def holds_run(run_dir: str) -> bool:
    """Whether a run was started in the directory."""
    try:
        RunDirectory.existing(run_dir)
    except RecordError:
        return False
    return True


def say_what_differs(plan: Plan, directory: RunDirectory, say: Say) -> None:
    """A run may go on elsewhere or otherwise than before, but not without a word: equal bytes are promised only to
    equal execution."""
    try:
        before = directory.read_plan().get("execution_facts")
    except RecordError:  # damaged: it is written anew
        return
    if before is None:
        return
    now = plan.execution_facts
    changed = [
        f"{field} {json.dumps(before.get(field))} -> {json.dumps(now.get(field))}"
        for field in sorted(before.keys() | now.keys())
        if before.get(field) != now.get(field)
    ]
    if changed:
        say(Event(kind=NOTE, text=f"execution differs from before: {'; '.join(changed)}"))


def _settings(plan: Plan) -> dict[str, str]:
    """For the environment before ray is imported, which reads all of this only then."""
    named = named_address(plan, os.environ)
    return ray_settings(own=named is None) | ({} if named is None else knock(*named, os.environ))


def _follow(cluster: Cluster, wished: Callable[[], bool], say: Say) -> None:
    asked = False
    for event in cluster.events():
        if event is not None:
            say(event)
        if wished() and not asked:
            asked = True
            say(Event(kind=NOTE, text="stopping at the next parcel; once more leaves at once"))
            cluster.stop()


def _keep_traceback(error: RoleError, directory: RunDirectory, say: Say) -> None:
    """A mistake of ours is worth its traceback, but not on the terminal."""
    notes = getattr(error, "__notes__", [])
    if notes:
        file = directory.logs / f"{error.field}-failure.txt"
        write_atomically(file, "\n".join(notes).encode())
        say(Event(kind=NOTE, text=f"the traceback is in {file}"))
