"""This file holds the tests of a server's start, without vLLM: what it is started with and how a start fails."""

import os
import sys
from pathlib import Path

import pytest

from miniverl.engines.vllm import server as room
from miniverl.engines.vllm.server import LOG, RECORD, Server, ServerPlan, environment, lora_rank, start
from miniverl.errors import EngineError


def plan(folder, python=sys.executable, **changes):
    facts = {
        "python": str(python), "model": "m", "dtype": "float32", "max_length": 64, "slots": 4, "rank": 8,
        "enforce_eager": True, "kv_cache_bytes": 1000, "startup_timeout": 30, "folder": Path(folder),
    }  # fmt: skip
    return ServerPlan(**{**facts, **changes})


def script(tmp_path, text):
    """An interpreter that does something else than vLLM."""
    path = tmp_path / "python"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return path


def test_a_server_is_told_everything_and_nothing_is_left_to_defaults(tmp_path):
    command = plan(tmp_path, rank=20).command(Path("/s"))
    for words in ("--uds /s", "--max-model-len 64", "--max-num-seqs 4", "--kv-cache-memory-bytes 1000",
                  "--max-lora-rank 32", "--generation-config vllm", "--logprobs-mode processed_logprobs",
                  "--no-enable-prefix-caching", "--enforce-eager", "--dtype float32"):  # fmt: skip
        assert words in " ".join(command)
    assert "--host" not in command and "--port" not in command
    assert "--enforce-eager" not in plan(tmp_path, enforce_eager=False).command(Path("/s"))


def test_ranks_are_rounded_up_to_those_with_kernels():
    assert [lora_rank(rank) for rank in (1, 8, 9, 64, 257, 512)] == [8, 8, 16, 64, 320, 512]


def test_a_server_asks_nothing_outside_and_has_no_development_routes():
    made = environment({"VLLM_SERVER_DEV_MODE": "1", "PYTHONPATH": "x", "RAY_ADDRESS": "y", "HOME": "/h"})
    assert made["HOME"] == "/h" and made["HF_HUB_OFFLINE"] == made["VLLM_NO_USAGE_STATS"] == made["DO_NOT_TRACK"] == "1"
    assert not {"VLLM_SERVER_DEV_MODE", "PYTHONPATH", "RAY_ADDRESS"} & made.keys()


def test_a_start_that_fails_shows_the_end_of_the_log_and_leaves_nothing(tmp_path):
    python = script(tmp_path, "print('first line'); print('no such model'); raise SystemExit(1)")
    with pytest.raises(EngineError, match=r"(?s)ended before it was ready.*no such model.*server\.log"):
        start(plan(tmp_path / "room", python))
    assert not (tmp_path / "room" / RECORD).exists()


def test_a_start_that_takes_too_long_is_given_up(tmp_path):
    python = script(tmp_path, "import time; time.sleep(600)")
    with pytest.raises(EngineError, match=r"not ready after 1 s \(rollout\.vllm\.startup_timeout\)"):
        Server(plan(tmp_path / "room", python, startup_timeout=1))
    assert not (tmp_path / "room" / RECORD).exists()


def test_a_start_without_enough_memory_is_tried_once_with_half(tmp_path):
    python = script(tmp_path, "import sys; print('bytes', sys.argv[sys.argv.index('--kv-cache-memory-bytes') + 1]);"
                              "print('not enough memory'); raise SystemExit(1)")  # fmt: skip
    with pytest.raises(EngineError, match="memory"):
        start(plan(tmp_path / "room", python))
    said = [line for line in (tmp_path / "room" / LOG).read_text().splitlines() if line.startswith("bytes")]
    assert said == ["bytes 1000", "bytes 500"]


def test_the_socket_is_private_and_a_path_too_long_for_one_is_refused(tmp_path, monkeypatch):
    seen = []

    def look(self):
        seen.append((self.socket.parent.stat().st_mode & 0o777, len(os.fsencode(str(self.socket)))))

    monkeypatch.setattr(Server, "_wait_until_healthy", look)
    Server(plan(tmp_path / "room", script(tmp_path, "import time; time.sleep(600)"))).close()
    assert seen[0][0] == 0o700 and seen[0][1] <= room.SOCKET_PATH
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    with pytest.raises(EngineError, match=r"107.*TMPDIR"):
        Server(plan(tmp_path / "room"))
    assert list(deep.iterdir()) == []
