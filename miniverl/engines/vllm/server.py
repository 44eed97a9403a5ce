"""This file holds Server: a vLLM server on a Unix socket, from its start to the end of its last process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from miniverl.engines.vllm import leash
from miniverl.errors import EngineError

RECORD, LOG = "processes.json", "server.log"
SOCKET_PATH = 107
"""Bytes the path of a Unix socket may have."""
BASE = "base"
"""The name under which the base model answers."""
LAST_LINES = 12
"""Of the log, in an error."""
POLL = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """What one server is started with."""

    python: str
    model: str
    """Folder of the base it serves."""
    dtype: str
    max_length: int
    slots: int
    """Requests computed at once."""
    rank: int
    """LoRA rank."""
    enforce_eager: bool
    kv_cache_bytes: int
    startup_timeout: int
    folder: Path
    """Holds the log and the ids of the processes."""

    def command(self, socket: Path) -> list[str]:
        return [
            self.python, "-m", "vllm.entrypoints.openai.api_server",
            "--model", self.model, "--served-model-name", BASE, "--uds", str(socket),
            "--dtype", self.dtype, "--max-model-len", str(self.max_length), "--max-num-seqs", str(self.slots),
            "--kv-cache-memory-bytes", str(self.kv_cache_bytes),
            "--enable-lora", "--max-loras", "1", "--max-lora-rank", str(lora_rank(self.rank)),
            # The model's own sampling defaults would change what a request means.
            "--generation-config", "vllm",
            # After the temperature: full-vocabulary log-probs wherever nothing is cut off.
            "--logprobs-mode", "processed_logprobs",
            # Keys and values of an old policy must never answer for a new one.
            "--no-enable-prefix-caching",
            "--uvicorn-log-level", "warning",  # a line per request would fill the disk
            *(["--enforce-eager"] if self.enforce_eager else []),
        ]  # fmt: skip


def lora_rank(rank: int) -> int:
    """The smallest rank vLLM has kernels for that holds this one."""
    return next(size for size in (8, 16, 32, 64, 128, 256, 320, 512) if size >= rank)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Of the server: nothing is asked or told outside, and no development routes."""
    inherited = {name: value for name, value in environ.items() if not name.startswith(("VLLM_", "RAY_", "PYTHON"))}
    return {
        **inherited,
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "PYTHONSAFEPATH": "1",  # no module of the current folder in the place of an installed one
    }


class Server:
    """Alive from birth; ``close`` ends every process of it."""

    def __init__(self, plan: ServerPlan) -> None:
        self._plan = plan
        plan.folder.mkdir(parents=True, exist_ok=True)
        self.swept = leash.sweep(plan.folder / RECORD)
        self._room = Path(tempfile.mkdtemp(prefix="mv-"))  # only its owner may enter
        self.socket = self._room / "s"
        self._refuse_long_path()
        with (plan.folder / LOG).open("ab") as log:
            self._leash = subprocess.Popen(
                [sys.executable, leash.__file__, str(plan.folder / RECORD), "--", *plan.command(self.socket)],
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env=environment(os.environ),
            )  # fmt: skip
        with ExitStack() as undo:
            undo.callback(self.close)
            self._wait_until_healthy()
            undo.pop_all()

    @property
    def alive(self) -> bool:
        return self._leash.poll() is None

    @property
    def log(self) -> Path:
        return self._plan.folder / LOG

    def processes(self) -> list[int]:
        """The server, its engine and whatever else it started."""
        return leash.living(self._plan.folder / RECORD)

    def client(self, timeout: float | None = 60.0) -> httpx.Client:
        """Talks to this server alone: proxies of the environment are not asked."""
        transport = httpx.HTTPTransport(uds=str(self.socket))
        return httpx.Client(transport=transport, base_url="http://server", timeout=timeout, trust_env=False)

    def async_client(self, connections: int) -> httpx.AsyncClient:
        transport = httpx.AsyncHTTPTransport(
            uds=str(self.socket), limits=httpx.Limits(max_connections=connections, max_keepalive_connections=None)
        )
        return httpx.AsyncClient(transport=transport, base_url="http://server", timeout=None, trust_env=False)

    def close(self) -> None:
        """Lets the leash go and waits until it has ended everything. May be called twice."""
        if self._leash.stdin is not None:
            self._leash.stdin.close()
        self._leash.wait()
        leash.sweep(self._plan.folder / RECORD)  # of a leash that was killed
        shutil.rmtree(self._room, ignore_errors=True)

    def error(self, problem: str) -> EngineError:
        """What happened, with the last lines of the log."""
        lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
        return EngineError(
            "vLLM server",
            problem="\n".join([problem, *(f"  | {line[:300]}" for line in lines)]),
            fix=f"read {self.log}, or use rollout.backend: hf_cached",
        )

    def _wait_until_healthy(self) -> None:
        last = time.monotonic() + self._plan.startup_timeout
        with self.client(timeout=5.0) as client:
            while time.monotonic() < last:
                if not self.alive:
                    raise self.error("ended before it was ready; the end of its log:")
                if _healthy(client):
                    return
                time.sleep(POLL)
        raise self.error(
            f"was not ready after {self._plan.startup_timeout} s (rollout.vllm.startup_timeout); the end of its log:"
        )

    def _refuse_long_path(self) -> None:
        length = len(os.fsencode(str(self.socket)))
        if length > SOCKET_PATH:
            shutil.rmtree(self._room)
            raise EngineError(
                "socket of the vLLM server",
                value=str(self.socket),
                problem=f"its path has {length} bytes, and a Unix socket may have {SOCKET_PATH}",
                fix="set TMPDIR to a shorter path, such as /tmp",
            )


def _healthy(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


def start(plan: ServerPlan) -> Server:
    """A server; one that fails for want of memory is tried once more with half the keys and values, then explained."""
    try:
        return Server(plan)
    except EngineError as error:
        if "memory" not in error.problem.lower():
            raise
    return Server(replace(plan, kv_cache_bytes=plan.kv_cache_bytes // 2))
