"""hf_cached beside other programs on the same model, prompts and machine: a process each, a repetition each in turn.

    python scripts/bench_peers.py --model FOLDER --environments DIR [--samples 4] [--json OUT] [--only NAME ...]

Peers that need packages of their own get a virtual environment in DIR, made at the first run. vLLM runs in the one that
``miniverl vllm setup`` made. A peer that cannot start is shown with its reason and never counted as slow. Ratios are
from one run; rates are not comparable between machines.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

from miniverl.bench.prompts import bench_prompts
from miniverl.data.packaged import is_resource, resource
from miniverl.plan.vllm import interpreter

WORKERS = Path(__file__).parent / "peers"
MODES = ("greedy", "stochastic")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A worker and the environment it runs in."""

    worker: str
    eager: bool = True
    """Without compilation."""
    packages: tuple[str, ...] = ()
    """Of an environment of its own; none: this one."""
    vllm: bool = False


PEERS = {
    "ours": Peer(worker="ours"),
    "ours, compiled": Peer(worker="ours", eager=False),
    "transformers generate": Peer(worker="transformers_generate"),
    "transformers continuous batching": Peer(worker="transformers_batching"),
    "miniverl 0.16": Peer(worker="miniverl_016", packages=("torch==2.13.0", "miniverl[train]==0.16.0")),
    "vLLM, eager": Peer(worker="vllm_inside", vllm=True),
    "vLLM, compiled": Peer(worker="vllm_inside", vllm=True, eager=False),
}


class Running:
    """A peer's process, ready to compute."""

    def __init__(self, peer: Peer, python: str, job: Path, log: Path) -> None:
        own = python == sys.executable
        dropped = () if own else ("PYTHONPATH",)
        environment = {name: value for name, value in os.environ.items() if name not in dropped}
        environment |= {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
        self.log = log
        self._process = subprocess.Popen(
            [python, str(WORKERS / f"{peer.worker}.py"), str(job)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=log.open("w"), text=True, env=environment,
        )  # fmt: skip

    def repetition(self, mode: str) -> dict[str, float]:
        """Seconds and tokens. Raises BrokenPipeError when the process has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(mode + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise BrokenPipeError(self.reason())
        return json.loads(line)

    def reason(self) -> str:
        """The last line it wrote."""
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if line.strip()]
        return lines[-1][:300] if lines else "ended without a word"

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def python_of(name: str, peer: Peer, environments: Path) -> str:
    """The interpreter of a peer; its environment is made when it is missing."""
    if peer.vllm:
        return interpreter(None)
    if not peer.packages:
        return sys.executable
    folder = environments / name.replace(" ", "-")
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making the environment of {name}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        for package in peer.packages:  # one after the other: torch first, in the build that is asked for
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", package], check=True)
        (folder / "ready").touch()
    return str(python)


def start(options: argparse.Namespace, scratch: Path) -> tuple[dict[str, Running], dict[str, str]]:
    """The peers that run, warmed up, and why the others do not."""
    model = resource(options.model) if is_resource(options.model) else Path(options.model)
    prompts = bench_prompts(Path(model), count=options.prompts, tokens=options.prompt_tokens)
    facts = {"model": str(model), "prompts": [prompt.ids.tolist() for prompt in prompts], "samples": options.samples,
             "response_tokens": options.response_tokens, "threads": options.threads}  # fmt: skip
    running: dict[str, Running] = {}
    absent: dict[str, str] = {}
    for number, name in enumerate(options.only or PEERS):
        peer, job = PEERS[name], scratch / f"{number}.json"
        job.write_text(json.dumps({**facts, "eager": peer.eager}))
        one = Running(peer, python_of(name, peer, options.environments), job, scratch / f"{number}.log")
        began = time.perf_counter()
        try:
            for mode in MODES:
                one.repetition(mode)
        except BrokenPipeError as error:
            absent[name] = str(error)
            one.close()
        else:
            running[name] = one
        said = absent.get(name, f"ready after {time.perf_counter() - began:.0f} s")
        print(f"{name}: {said}", flush=True)
    return running, absent


def measure(options: argparse.Namespace, scratch: Path) -> dict[str, object]:
    running, absent = start(options, scratch)
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {mode: [] for mode in MODES} for name in running}
    for _ in range(options.repetitions):
        for mode in MODES:
            for name, one in running.items():
                found[name][mode].append(one.repetition(mode))
    for one in running.values():
        one.close()
    asked = ("model", "prompts", "prompt_tokens", "response_tokens", "samples", "threads", "repetitions")
    workload = {key: getattr(options, key) for key in asked}
    return {"workload": workload, "repetitions": found, "not_measured": absent, "rates": rates(found)}


def rates(found: dict[str, dict[str, list[dict[str, float]]]]) -> dict[str, dict[str, float]]:
    """Median tokens per second by peer and mode."""
    return {
        name: {mode: statistics.median(one["tokens"] / one["seconds"] for one in done) for mode, done in modes.items()}
        for name, modes in found.items()
    }


def show(found: dict[str, object]) -> None:
    table: dict[str, dict[str, float]] = found["rates"]  # type: ignore[assignment]
    ours = [name for name in table if name.startswith("ours")]
    for mode in MODES:
        best = max((table[name][mode] for name in ours), default=None)
        for name, row in table.items():
            ratio = f"{best / row[mode]:8.2f} x" if best and name not in ours else ""
            print(f"{mode:<12}{name:<34}{row[mode]:10.1f} tokens/s {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description="hf_cached beside other programs, interleaved.")
    parser.add_argument("--model", default="miniverl://tiny-student", help="a model folder or a packaged model")
    parser.add_argument("--environments", type=Path, required=True, help="folder for the peers' environments")
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--response-tokens", type=int, default=128)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PEERS, metavar="NAME", help="these peers alone")
    parser.add_argument("--json", type=Path, metavar="OUT", help="also write everything here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(options, Path(scratch))
    show(found)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
