"""This file holds the locating of models and data: what a recipe names -> files on this machine, nothing downloaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from huggingface_hub import constants

from miniverl.errors import ConfigError, ModelError

PACKAGED = "miniverl://"
"""What a model or a data file that travels with the package is called by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A model folder."""

    path: Path
    """Absolute."""
    commit: str | None
    """Of a hub model: the commit its files belong to."""


def locate_model(name: str, *, field: str) -> Located:
    """The folder of a model: packaged, a path (``~`` is home), or the hub's local cache. ModelError if none of them."""
    if name.startswith(PACKAGED):
        return Located(path=_packaged(name, field=field), commit=None)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return Located(path=folder.resolve(), commit=None)
    if folder.exists():
        raise ModelError(field, value=name, problem="is a file", fix="name the folder that holds config.json")
    if (cached := _cached(name)) is not None:
        return cached
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) and not name.startswith("."):
        problem = f"is neither a folder nor in the local hub cache ({constants.HF_HUB_CACHE})"
        raise ModelError(
            field, value=name, problem=problem, fix=f"fetch it first (hf download {name}), or name a local folder"
        )
    raise ModelError(field, value=name, problem="there is no such folder", fix="correct the path")


def locate_file(name: str, *, field: str) -> Path:
    """The absolute path of a data file, packaged or not; whether it can be read is for its reader to say."""
    if name.startswith(PACKAGED):
        return _packaged(name, field=field)
    return Path(name).expanduser().absolute()


def _packaged(name: str, *, field: str) -> Path:
    root = Path(str(files("miniverl.assets"))).resolve()
    path = root / name.removeprefix(PACKAGED)
    if path.resolve().is_relative_to(root) and (path.is_file() or (path / "config.json").is_file()):
        return path
    carried = [
        PACKAGED + found.relative_to(root).as_posix()
        for found in (*(config.parent for config in root.rglob("config.json")), *root.rglob("*.parquet"))
    ]
    close = get_close_matches(name, carried, n=1)
    raise ConfigError(
        field,
        value=name,
        problem="does not come with the package",
        fix=f"did you mean {close[0]}?" if close else f"write one of {', '.join(sorted(carried))}, or a path",
    )


def _cached(name: str) -> Located | None:
    """The newest snapshot of a hub model that an earlier download left on this machine."""
    repository = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    try:
        commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    snapshot = repository / "snapshots" / commit
    return Located(path=snapshot.absolute(), commit=commit) if snapshot.is_dir() else None
