"""This file holds the turning of schema violations into complaints: key, value, what is wrong, what to write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from miniverl.errors import ConfigError
from miniverl.recipe.nearest import fix_for, has_a_relative
from miniverl.recipe.schema import Block, Recipe, block_of, known_keys

KNOWN = tuple(known_keys())

WORDS: Mapping[str, tuple[str, str]] = {
    "int_type": ("is not a whole number", "write a whole number"),
    "float_type": ("is not a number", "write a number"),
    "bool_type": ("is neither true nor false", "write true or false"),
    "string_type": ("is not text", "write text, in quotes if it looks like something else"),
    "tuple_type": ("is not a list", "write a list"),
    "model_type": ("is not a block of keys", "write its keys beneath it, indented"),
    "finite_number": ("is not finite", "write a finite number"),
    "greater_than": ("is not above {gt:g}", "write a number above {gt:g}"),
    "greater_than_equal": ("is below {ge:g}", "write {ge:g} or more"),
    "less_than": ("is not below {lt:g}", "write a number below {lt:g}"),
    "less_than_equal": ("is above {le:g}", "write {le:g} or less"),
    "too_short": ("is empty", "write at least {min_length} entry"),
    "too_long": ("has {actual_length} entries", "write at most {max_length}"),
    "string_too_short": ("is empty", "write some text, or leave the key out"),
}
"""pydantic's name of a violation -> problem and fix, filled in from the violation's context."""

SHOWN = 12
"""Complaints printed at once; beyond them a list no longer helps."""


def complaints(violations: ValidationError) -> tuple[ConfigError, ...]:
    """One complaint per key, in the order found."""
    by_key: dict[str, ConfigError] = {}
    for violation in violations.errors(include_url=False):
        if violation["type"] == "too_short" and violation["input"]:
            continue  # its entries are wrong, which is said of each
        for complaint in _complaints(violation):
            by_key.setdefault(complaint.field, complaint)
    return tuple(by_key.values())


def one_error(found: Sequence[ConfigError], *, source: str) -> ConfigError:
    """All complaints in one error: a user mends a file once, not once per key."""
    if len(found) == 1:
        return found[0]
    lines = [f"  {complaint}" for complaint in found[:SHOWN]]
    if len(found) > SHOWN:
        lines.append(f"  and {len(found) - SHOWN} more")
    return ConfigError(source, problem=f"{len(found)} keys are wrong", fix="\n".join(["mend each of them:", *lines]))


def _complaints(violation: Mapping[str, Any]) -> Iterator[ConfigError]:
    kind, loc, value, context = violation["type"], violation["loc"], violation["input"], violation.get("ctx", {})
    if kind == "extra_forbidden":
        yield from _unknown(_dotted(loc), value)
    elif kind == "missing":
        yield from _missing(_within_schema(loc))
    elif kind == "literal_error":
        yield _no_choice(_dotted(_within_schema(loc)), value, context["expected"])
    else:
        problem, fix = WORDS.get(kind, (violation["msg"], "write another value"))
        yield ConfigError(
            _dotted(_within_schema(loc)),
            value=value,
            problem=problem.format(**context),
            fix=_unquoted(value, kind) or fix.format(**context),
        )


def _unknown(key: str, value: Any, *, foreign: bool = False) -> Iterator[ConfigError]:
    """A block from elsewhere is taken apart, so that each of its keys gets its own answer."""
    if isinstance(value, Mapping) and value and (foreign or not has_a_relative(key, KNOWN)):
        for name, inner in value.items():
            yield from _unknown(f"{key}.{name}", inner, foreign=True)
    else:
        yield ConfigError(key, value=value, problem="no such key", fix=fix_for(key, KNOWN))


def _missing(loc: tuple[str | int, ...]) -> Iterator[ConfigError]:
    """A missing block is a complaint about each key it must have."""
    annotation: Any = Recipe
    meaning = ""
    for part in loc:
        block = block_of(annotation)
        if block is None or part not in block.model_fields:  # an entry of a list
            break
        annotation, meaning = block.model_fields[part].annotation, block.model_fields[part].description or ""
    block = block_of(annotation)
    names = [name for name, field in block.model_fields.items() if field.is_required()] if block else []
    if not names:
        yield ConfigError(_dotted(loc), problem="is missing", fix=f"write it{f' ({meaning})' if meaning else ''}")
    for name in names:
        yield from _missing((*loc, name))


def _no_choice(key: str, value: Any, expected: str) -> ConfigError:
    """``expected`` is pydantic's list of the choices, such as ``'auto', True or False``."""
    words = [word.lower() if word in ("True", "False") else word for word in re.findall(r"[\w-]+", expected)]
    words = [word for word in words if word != "or"]
    close = get_close_matches(value.lower(), words, n=1, cutoff=0.5) if isinstance(value, str) else []
    problem = f"is not one of {', '.join(words)}" if len(words) > 1 else f"is not {words[0]}"
    return ConfigError(
        key,
        value=value,
        problem=problem,
        fix=f"did you mean {close[0]}?" if close else f"write {words[0] if len(words) == 1 else 'one of them'}",
    )


def _unquoted(value: Any, kind: str) -> str | None:
    """A number that YAML reads as text was written in quotes."""
    if (
        kind in ("int_type", "float_type")
        and isinstance(value, str)
        and re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", value)
    ):
        return f"write it without quotes: {value}"
    return None


def _within_schema(loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Without the parts that name a member of a union or a key of none."""
    kept: list[str | int] = []
    block: type[Block] | None = Recipe
    for part in loc:
        if isinstance(part, int):
            kept.append(part)
        elif block is not None and part in block.model_fields:
            kept.append(part)
            block = block_of(block.model_fields[part].annotation)
    return tuple(kept)


def _dotted(loc: tuple[str | int, ...]) -> str:
    text = ""
    for part in loc:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
