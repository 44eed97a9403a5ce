"""This file holds the addresses of the embedded default: packaged models and data by ``miniverl://`` name."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from miniverl.errors import ConfigError

SCHEME = "miniverl://"
RESOURCES = (
    "miniverl://tiny-teacher",
    "miniverl://tiny-student",
    "miniverl://sums/train.parquet",
    "miniverl://sums/validation.parquet",
    "miniverl://sums/heldout.parquet",
)
"""Two model folders and three Parquet files."""


def is_resource(name: str) -> bool:
    """Whether a recipe's model id or data file names something that travels with the package."""
    return name.startswith(SCHEME)


def resource(name: str) -> Path:
    """The absolute path of a packaged model folder or data file. Raises ConfigError for an unknown name."""
    if name not in RESOURCES:
        near = get_close_matches(name, RESOURCES, n=1)
        raise ConfigError(
            "packaged resource",
            value=name,
            problem=f"the package carries only {', '.join(RESOURCES)}",
            fix=f"did you mean {near[0]}?" if near else "name one of these, a folder or a file",
        )
    return Path(str(files("miniverl.assets"))).joinpath(name.removeprefix(SCHEME)).resolve()
