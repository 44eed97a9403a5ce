"""This file holds the rules about shapes: types at process borders are frozen, every file with code has its test."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.sources import Source, sources

BORDERS = ("miniverl/contract", "miniverl/plan/plan.py")
"""What crosses between processes is defined here."""

UNTESTED = (
    "miniverl/__main__.py",  # one call of main
    "miniverl/training/roles.py",  # protocols: what they ask is what every test of a role shows
)


def loose_types(root: Path) -> list[str]:
    """Dataclasses at a border that are not frozen, slotted and keyword-only."""
    return [
        f"{source.name}:{node.lineno} {node.name} lacks {', '.join(sorted(missing))}"
        for source in sources(root)
        if source.name.startswith(BORDERS)
        for node in source.classes()
        if (missing := _missing(node))
    ]


def _missing(node: ast.ClassDef) -> set[str]:
    for decorator in node.decorator_list:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(call) in ("dataclass", "dataclasses.dataclass"):
            words = decorator.keywords if isinstance(decorator, ast.Call) else []
            given = {word.arg for word in words if ast.unparse(word.value) == "True"}
            return {"frozen", "slots", "kw_only"} - given
    return set()


def without_tests(root: Path) -> list[str]:
    """Files with functions but no test file in the mirrored place: tests/data/test_order for miniverl/data/order."""
    return [
        f"{source.name} has no {mirror}"
        for source in sources(root)
        if source.name not in UNTESTED and not source.is_init and _has_code(source)
        if not (root / (mirror := _mirror(source.name))).is_file()
    ]


def _has_code(source: Source) -> bool:
    return any(True for _ in source.functions())


def _mirror(name: str) -> str:
    folder, _, file = name.removeprefix("miniverl/").rpartition("/")
    return "/".join(part for part in ("tests", folder, f"test_{file}") if part)


def stale_allowances(root: Path) -> list[str]:
    """Names on the allow-list that are gone."""
    return [name for name in UNTESTED if not (root / name).is_file()]
