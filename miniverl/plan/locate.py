"""This file holds the locating of models and data: what a recipe names -> files on this machine, nothing downloaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import constants

from miniverl.data.packaged import is_resource, resource
from miniverl.errors import DataError, ModelError
from miniverl.recipe.path import absolute, expanded, kind_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A model folder."""

    path: Path
    """Absolute."""
    commit: str | None
    """Of a hub model: the commit its files belong to."""


def locate_model(name: str, *, field: str) -> Located:
    """The folder of a model: packaged, a path (``~`` is home), or the hub's local cache. ModelError if none of them."""
    if is_resource(name):
        return Located(path=resource(name, field=field), commit=None)
    folder = expanded(name, field=field, refusal=ModelError)
    kind = kind_of(folder, field=field, refusal=ModelError)
    if kind == "folder":
        return Located(path=absolute(name, field=field, refusal=ModelError, links=True), commit=None)
    if kind == "file":
        raise ModelError(field, value=name, problem="is a file", fix="name the folder that holds config.json")
    if (cached := _cached(name, field=field)) is not None:
        return cached
    if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) and not name.startswith("."):
        problem = f"is neither a folder nor in the local hub cache ({constants.HF_HUB_CACHE})"
        raise ModelError(
            field, value=name, problem=problem, fix=f"fetch it first (hf download {name}), or name a local folder"
        )
    raise ModelError(field, value=name, problem="there is no such folder", fix="correct the path")


def locate_file(name: str, *, field: str) -> Path:
    """The absolute path of a data file, packaged or not; whether it can be read is for its reader to say."""
    if is_resource(name):
        return resource(name, field=field)
    return absolute(name, field=field, refusal=DataError)


def _cached(name: str, *, field: str) -> Located | None:
    """The newest snapshot of a hub model that an earlier download left on this machine."""
    repository = Path(constants.HF_HUB_CACHE) / f"models--{name.replace('/', '--')}"
    try:
        commit = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(
            field,
            value=name,
            problem=f"its place in the local hub cache cannot be read ({error})",
            fix="fetch it again",
        ) from None
    snapshot = repository / "snapshots" / commit
    if kind_of(snapshot, field=field, refusal=ModelError) != "folder":
        return None
    return Located(path=absolute(snapshot, field=field, refusal=ModelError), commit=commit)
