"""This file holds the overrides of a command line: key=value, +key=value and ~key, laid over a recipe's tree."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from miniverl.errors import ConfigError

Override = tuple[str, str | None]
"""Dotted key and the YAML text of its value; None removes the key."""


DEEPEST = 16
"""Parts a dotted key may have; no key of a recipe has nearly as many."""


def split(text: str) -> Override:
    """``key=value`` in its parts. ``+key=value`` (add) means the same here: the schema decides what exists."""
    if text.startswith("~"):
        return text[1:].partition("=")[0].strip(), None
    key, equals, value = text.partition("=")
    if not equals or not key.strip("+ "):
        raise ConfigError(
            "override", value=text, problem="is not of the form key=value", fix="write rollout.temperature=0.7, say"
        )
    return key.lstrip("+").strip(), value


def put(tree: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A new tree with ``value`` at the dotted key. A block laid over a block keeps the keys it does not name."""
    if key.count(".") >= DEEPEST:
        raise _too_deep(key)
    head, _, rest = key.partition(".")
    laid = dict(tree)
    old = laid.get(head)
    if rest:
        if old is not None and not isinstance(old, Mapping):
            raise ConfigError(key, value=value, problem=f"{head} = {old!r} is not a block", fix=f"write ~{head} first")
        laid[head] = put(old or {}, rest, value)
    elif isinstance(value, Mapping) and isinstance(old, Mapping):
        for name, inner in value.items():
            old = put(old, str(name), inner)
        laid[head] = old
    else:
        laid[head] = deepcopy(value)
    return laid


def remove(tree: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A new tree without the dotted key, so that its default holds again. ConfigError when the tree has no such key."""
    head, _, rest = key.partition(".")
    left = dict(tree)
    if head not in left or (rest and not isinstance(left[head], Mapping)):
        raise ConfigError(f"~{key}", problem="the recipe does not set this key", fix="drop the override")
    if rest:
        left[head] = remove(left[head], rest)
    else:
        del left[head]
    return left


def _too_deep(key: str) -> ConfigError:
    parts = key.count(".") + 1
    return ConfigError(f"{key[:40]}...", problem=f"has {parts} parts", fix="write a key such as rollout.temperature")
