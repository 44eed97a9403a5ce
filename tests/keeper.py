"""This file holds the keeper of the tests' shared Ray: it starts a head and ends it when its own input ends."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

RAY = str(Path(sys.executable).with_name("ray"))
STARTED = "Ray runtime started"
MEMORY = 256 * 2**20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def keep() -> None:
    """Prints the addresses as one line of JSON, then waits for the end of its input, also that of a dead parent."""
    environment = {**os.environ, "RAY_AUTH_MODE": "token"}
    if not (Path.home() / ".ray" / "auth_token").is_file():
        subprocess.run([RAY, "get-auth-token", "--generate"], check=True, stdout=subprocess.DEVNULL)
    gcs, jobs = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        head = subprocess.Popen(
            [RAY, "start", "--head", "--block", f"--port={gcs}", f"--dashboard-port={jobs}", "--num-cpus=8",
             f"--dashboard-agent-listen-port={free_port()}", f"--ray-client-server-port={free_port()}",
             f"--object-store-memory={MEMORY}", f"--temp-dir={folder}", "--disable-usage-stats"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert any(STARTED in line for line in head.stdout), f"the head ended with {head.wait()}"
        print(json.dumps({"gcs": f"127.0.0.1:{gcs}", "jobs": f"http://127.0.0.1:{jobs}"}), flush=True)
        sys.stdin.read()
        head.terminate()
        head.communicate(timeout=60)


if __name__ == "__main__":
    keep()
