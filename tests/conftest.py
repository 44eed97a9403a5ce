"""This file holds the environment every test runs in: one thread, no network, the same float bits everywhere."""

from __future__ import annotations

import os
import sys

from hypothesis import settings

assert "torch" not in sys.modules, "torch reads these variables when it is loaded; set them before"

os.environ.update(
    # Sums of floats depend on the number of threads; torch takes its own from OMP_NUM_THREADS.
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    MKL_CBWR="AVX2,STRICT",
    ATEN_CPU_CAPABILITY="avx2",
    TOKENIZERS_PARALLELISM="false",
    # No test asks a network for anything.
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    WANDB_MODE="offline",
    WANDB_SILENT="true",
    RAY_USAGE_STATS_ENABLED="0",
    RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
    # Help texts and progress look the same on every terminal.
    COLUMNS="120",
    NO_COLOR="1",
    TERM="dumb",
)
for name in ("RAY_ADDRESS", "WANDB_API_KEY", "WANDB_RUN_ID", "FORCE_COLOR", "PYTHONWARNINGS"):
    os.environ.pop(name, None)

# The same examples on every machine, and no deadline: a busy machine is not a failure.
settings.register_profile("house", derandomize=True, deadline=None, database=None)
settings.load_profile("house")

from tests.ray_cluster import attached, shared_ray  # noqa: E402, F401  fixtures, once a session
