"""This file holds the environment variables of a role's process: set by Ray before the process loads anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from miniverl.plan.plan import DeviceShare, Plan

FORWARDED = (
    "HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT", "TRANSFORMERS_OFFLINE",
    "WANDB_MODE", "WANDB_PROJECT", "WANDB_ENTITY", "WANDB_NAME", "WANDB_RUN_ID", "WANDB_DIR",
    "PYTORCH_CUDA_ALLOC_CONF",
)  # fmt: skip
"""What a run may need from the shell it was started in. No secrets: whoever sees the cluster sees these. The address
of a proxy may carry a password, so a proxy is set where Ray is started."""

EQUAL_BITS = {"MKL_CBWR": "AVX2,STRICT", "ATEN_CPU_CAPABILITY": "avx2"}
"""Matrix products whose bits do not depend on the number of rows or threads; read when torch loads."""


def named_address(plan: Plan, shell: Mapping[str, str]) -> tuple[str, str] | None:
    """(who named it, address) of the Ray to attach to; None: the run starts its own."""
    for source, address in (("ray.address", plan.ray_address), ("RAY_ADDRESS", shell.get("RAY_ADDRESS"))):
        if address and address != "local":
            return source, address
    return None


def ray_settings(*, own: bool) -> dict[str, str]:
    """What Ray reads when it is imported, so it must be in the environment before."""
    return {
        "RAY_USAGE_STATS_ENABLED": "0",
        # Under ``uv run`` Ray would build the environment again for each worker; ours use this interpreter.
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        # Off, every part of Ray listens on the loopback address alone, whatever the system.
        **({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"} if own else {}),
    }


@contextmanager
def settled(settings: Mapping[str, str]) -> Iterator[None]:
    """Inside the block the environment holds ``settings``, where it does not say otherwise; after it every RAY_*
    variable is as it was before, also those that Ray sets for itself: a notebook may start another Ray."""
    before = {name: value for name, value in os.environ.items() if name.startswith("RAY_")}
    for name, setting in settings.items():
        os.environ.setdefault(name, setting)
    try:
        yield
    finally:
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]
        os.environ.update(before)


def forwarded(shell: Mapping[str, str]) -> dict[str, str]:
    """The allowed part of the environment in ``shell``; paths of PYTHONPATH made absolute, for other folders."""
    found = {name: shell[name] for name in FORWARDED if name in shell}
    if shell.get("PYTHONPATH"):
        folders = shell["PYTHONPATH"].split(os.pathsep)
        found["PYTHONPATH"] = os.pathsep.join(os.path.abspath(folder) for folder in folders if folder)
    return found


def role_variables(plan: Plan, role: str, shell: Mapping[str, str]) -> dict[str, str]:
    """Everything the role's process needs beyond what its node gives it."""
    share = plan.placement[role]
    return {
        **forwarded(shell),
        **_threads(share),
        **(EQUAL_BITS if plan.rollout.deterministic else {}),
        **({} if share.gpu else {"CUDA_VISIBLE_DEVICES": ""}),  # else a role without a card would take one
        "TOKENIZERS_PARALLELISM": "false",
    }


def _threads(share: DeviceShare) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    return dict.fromkeys(names, str(share.threads))
