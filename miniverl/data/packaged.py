"""This file holds the addresses of packaged models and data: ``miniverl://`` names -> files of the package."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from miniverl.errors import ConfigError

SCHEME = "miniverl://"
"""What a model or a data file that travels with the package is called by."""


def is_resource(name: str) -> bool:
    """Whether a recipe's model id or data file names something that travels with the package."""
    return name.startswith(SCHEME)


def resources() -> tuple[str, ...]:
    """The names of everything that travels with the package: model folders and Parquet files, sorted."""
    root = _root()
    models = (config.parent for config in root.rglob("config.json"))
    return tuple(sorted(SCHEME + path.relative_to(root).as_posix() for path in (*models, *root.rglob("*.parquet"))))


def resource(name: str, *, field: str = "packaged resource") -> Path:
    """The absolute path of a packaged model folder or data file. Raises ConfigError for any other name.

    ``field`` is the recipe key that holds the name; the error names it.
    """
    carried = resources()
    if name not in carried:
        # Compared without the scheme: it is long enough to make everything look near.
        close = get_close_matches(name.removeprefix(SCHEME), [known.removeprefix(SCHEME) for known in carried], n=1)
        raise ConfigError(
            field,
            value=name,
            problem="does not come with the package",
            fix=f"did you mean {SCHEME}{close[0]}?" if close else f"write one of {', '.join(carried)}, or a path",
        )
    return _root() / name.removeprefix(SCHEME)


def _root() -> Path:
    return Path(str(files("miniverl.assets"))).resolve()
