"""What the actors cost: one run in this process and one over actors, step by step in turn, on the quickstart.

    python scripts/bench_orchestration.py [--steps 30] [--json OUT] [key=value ...]

Prints the median step of both and their ratio, the controller's CPU time and messages per step, the peak memory of
every actor, and the seconds from Enter to the first step of `miniverl run`. Ratios are from one run; times are not
comparable between machines.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.update(
    OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", MKL_CBWR="AVX2,STRICT", ATEN_CPU_CAPABILITY="avx2",
    TOKENIZERS_PARALLELISM="false", RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_UV_RUN_RUNTIME_ENV="0",
)  # fmt: skip

from actors.cluster import Cluster
from actors.post import Post
from actors.remote import remote_roles
from actors.session import ray_session
from actors.watch import Watch
from miniverl.contract.event import STEP, Event
from miniverl.metrics import declared
from miniverl.plan.compile import compile_plan
from miniverl.plan.plan import Plan
from miniverl.recipe.load import load_recipe
from miniverl.record.reader import JournalReader
from miniverl.training.assemble import assemble
from miniverl.training.local import local_roles
from miniverl.training.loop import train
from miniverl.training.roles import Roles


class Turn:
    """One of two runs that take a step each, in turn; the end of a step is where it waits."""

    def __init__(self) -> None:
        self.mine = threading.Semaphore(0)
        self.other: Turn | None = None
        self.seconds: list[float] = []

    def say(self, event: Event) -> None:
        if event.kind == STEP:
            self.seconds.append(event.values[declared.TIME_STEP.name])
            self.hand_over()
            self.mine.acquire()

    def hand_over(self) -> None:
        assert self.other is not None
        self.other.mine.release()

    def run(self, plan: Plan, roles: Roles) -> None:
        run = assemble(plan, roles, stop=lambda: False, say=self.say)
        self.mine.acquire()
        train(run)
        self.hand_over()


def interleaved(folder: Path, overrides: list[str]) -> dict[str, object]:
    """The same steps in one process and over actors, in turn."""
    plans = [plan_in(folder / name, "trainer.test_freq=0", "trainer.val_before_train=false", "trainer.save_freq=0",
                     "data.val_files=[]", *overrides) for name in ("local", "actors")]  # fmt: skip
    here, there = Turn(), Turn()
    here.other, there.other = there, here
    with ray_session(plans[1]):
        cluster = Cluster.create(plans[1])
        try:
            cluster.start(lambda event: None)
            actors = {role: actor for role, actor in cluster.actors.items() if role != "controller"}
            jobs = ((here, plans[0], local_roles(plans[0])), (there, plans[1], remote_roles(actors, Post(Watch()))))
            # SQLite belongs to the thread that opened it: the local run has this one.
            thread = threading.Thread(target=there.run, args=(plans[1], jobs[1][2]))
            thread.start()
            here.mine.release()
            here.run(plans[0], jobs[0][2])
            thread.join()
        finally:
            cluster.kill()
    warm = slice(1, None)  # the first step builds caches on both sides
    local, remote = statistics.median(here.seconds[warm]), statistics.median(there.seconds[warm])
    return {
        "steps": len(here.seconds[warm]),
        "step_seconds_one_process": local,
        "step_seconds_actors": remote,
        "actors_over_one_process": remote / local,
    }


def whole_command(folder: Path, overrides: list[str]) -> dict[str, object]:
    """`miniverl run` as a user starts it: from Enter to the first step, and what its journal says of the actors."""
    run_dir = folder / "command"
    command = [sys.executable, "-m", "miniverl", "run", "quickstart", f"run.dir={run_dir}",
               "trainer.val_before_train=false", *overrides]  # fmt: skip
    began = time.monotonic()
    first_line = first_step = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            first_line = first_line or time.monotonic() - began
            if first_step is None and line.lstrip().startswith("step 1"):
                first_step = time.monotonic() - began
    if process.returncode:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    journal = JournalReader.read_only(run_dir)
    notes = [facts for _, _, facts in journal.notes()]
    journal.release()
    costs = [note["controller"] for note in notes if "controller" in note][1:]
    peaks = {role: facts["peak_rss"] for note in notes for role, facts in note.get("actors", {}).items()}
    return {
        "seconds_to_first_line": first_line,
        "seconds_to_first_step": first_step,
        "controller_cpu_ms_per_step": 1e3 * statistics.median(cost["cpu_seconds"] for cost in costs),
        "controller_messages_per_step": statistics.median(cost["messages"] for cost in costs),
        "peak_mib": {role: round(peak / 2**20) for role, peak in sorted(peaks.items())},
    }


def plan_in(folder: Path, *overrides: str) -> Plan:
    folder.mkdir(parents=True)
    return compile_plan(load_recipe("quickstart", [f"run.dir={folder}", *overrides]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--json", type=Path)
    parser.add_argument("overrides", nargs="*", help="recipe keys to change, key=value")
    arguments = parser.parse_args()
    overrides = [f"trainer.total_training_steps={arguments.steps + 1}", *arguments.overrides]
    with tempfile.TemporaryDirectory() as folder:
        figures = {**interleaved(Path(folder), overrides), **whole_command(Path(folder), overrides)}
    print(json.dumps(figures, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
