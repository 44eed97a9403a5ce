"""This file holds the loading of recipes: YAML text and overrides in, a valid Recipe or one error out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from miniverl.errors import ConfigError
from miniverl.recipe.complaints import complaints, one_error
from miniverl.recipe.defaults import with_defaults
from miniverl.recipe.overrides import put, remove, split
from miniverl.recipe.packaged import find_recipe
from miniverl.recipe.rules import RULES
from miniverl.recipe.schema import Recipe


def load_recipe(source: str, overrides: Iterable[str] | Mapping[str, object] = ()) -> Recipe:
    """The recipe in ``source`` (a path or a packaged name) with ``overrides`` laid over it, the last one winning.

    Overrides are command-line words (``key=value``, ``+key=value``, ``~key``, the value parsed as YAML) or a mapping
    of dotted keys to values. Raises ConfigError that names every key that is wrong.
    """
    path = find_recipe(source)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("recipe", value=source, problem=f"cannot be read: {error}", fix="check the file") from None
    tree: Mapping[str, Any] = {"name": path.stem, **parse_block(text, source=source)}
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            tree = put(tree, key, value)
    else:
        for word in overrides:
            key, value_text = split(word)
            tree = remove(tree, key) if value_text is None else put(tree, key, _parse(value_text, source=word))
    return recipe_from(tree, source=source)


def recipe_from(tree: Mapping[str, Any], *, source: str) -> Recipe:
    """The recipe a tree of plain values describes. Raises ConfigError; ``source`` names it there."""
    try:
        recipe = Recipe.model_validate(with_defaults(tree))
    except ValidationError as violations:
        raise one_error(complaints(violations), source=source) from None
    broken = [complaint for rule in RULES if (complaint := rule(recipe)) is not None]
    if broken:
        raise one_error(broken, source=source)
    return recipe


def parse_block(text: str, *, source: str) -> dict[str, Any]:
    """The blocks and keys of a YAML document; an empty one has none."""
    tree = _parse(text, source=source)
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(
            source, value=tree, problem="is not a recipe", fix="write keys and blocks, such as objective: gkd"
        )
    return tree


SHOWN = 120
"""Characters of an override, or of a parser's complaint, repeated in an error."""


class _Loader(yaml.SafeLoader):
    """safe_load that refuses a key written twice, and reads 1e-4 as the number it is."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        return super().construct_object(node, deep=True)  # so that a block that contains itself is refused

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise ConfigError(
                    "recipe", value=key, problem=f"the key in line {line} is not text", fix="put it in quotes"
                )
            if key in seen:
                raise ConfigError(
                    key, problem=f"is written twice, in lines {seen[key]} and {line}", fix="keep one of them"
                )
            seen[key] = line
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 wants a dot and a signed exponent in a number; nobody who writes 1e-4 means text.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _parse(text: str, *, source: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader: plain values only
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(
            source[:SHOWN],
            problem=f"is not YAML: {where}{getattr(error, 'problem', error)}",
            fix="check indents and quotes",
        ) from None
    except RecursionError:
        raise ConfigError(source[:SHOWN], problem="is nested too deeply", fix="close the brackets earlier") from None
    except (ValueError, TypeError, LookupError, AttributeError) as error:  # what PyYAML lets through for a bad scalar
        raise ConfigError(
            source[:SHOWN],
            problem=f"holds a value that YAML cannot read ({str(error)[:SHOWN]})",
            fix="write a plain number, date or text, or put the text in quotes",
        ) from None
