"""This file holds the budgets: how long a file and a function may be, how many arguments and how deep."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.sources import Source, sources

FILE_LINES = 300
FUNCTION_LINES = 50
ARGUMENTS = 6
NESTING = 3
TIGHTER: Mapping[str, int] = {"miniverl/training/loop.py": 120}
"""Files with a budget of their own: the page is a page."""

COMMANDS = "miniverl/cli"
"""An option of a command is an argument of its function, so the arguments of commands are not counted."""

BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)


def over_budget(root: Path) -> list[str]:
    """One line for every file or function that has grown too large."""
    return [complaint for source in sources(root) for complaint in (*_file(source), *_functions(source))]


def _file(source: Source) -> Iterator[str]:
    lines, limit = len(source.text.splitlines()), TIGHTER.get(source.name, FILE_LINES)
    if lines > limit:
        yield f"{source.name}: {lines} lines, at most {limit}"


def _functions(source: Source) -> Iterator[str]:
    for function in source.functions():
        where = f"{source.name}:{function.lineno} {function.name}"
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES:
            yield f"{where}: {lines} lines, at most {FUNCTION_LINES}"
        if source.room != COMMANDS and (count := _arguments(function)) > ARGUMENTS:
            yield f"{where}: {count} arguments, at most {ARGUMENTS}"
        if (depth := _depth(function.body)) > NESTING:
            yield f"{where}: blocks nested {depth} deep, at most {NESTING}"


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without self and cls."""
    spec = function.args
    names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _depth(statements: list[ast.stmt]) -> int:
    """How many blocks lie inside each other; elif and except stay on the level of their if and try."""
    return max((_depth_of(statement) for statement in statements), default=0)


def _depth_of(statement: ast.stmt) -> int:
    if not isinstance(statement, BLOCKS):
        return 0
    inner = [*getattr(statement, "body", [])]
    for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        inner += part.body
    inner += getattr(statement, "finalbody", [])
    rest = getattr(statement, "orelse", [])
    if isinstance(statement, ast.If) and len(rest) == 1 and isinstance(rest[0], ast.If):
        return max(1 + _depth(inner), _depth_of(rest[0]))
    return 1 + _depth([*inner, *rest])
