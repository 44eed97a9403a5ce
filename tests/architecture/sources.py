"""This file holds Source: a Python file of the house with its syntax tree, as the house rules read it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("miniverl", "actors")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file. ``name`` is its path below the root, with slashes: ``miniverl/training/loop.py``."""

    name: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder: miniverl/training."""
        return self.name.rpartition("/")[0]

    @property
    def is_init(self) -> bool:
        return self.name.endswith("__init__.py")

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """One imported module, whether by a statement or by ``importlib.import_module`` with a literal name."""

    module: str
    line: int
    nested: bool
    """Inside a function."""

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


def sources(root: Path, *, below: tuple[str, ...] = PACKAGES) -> list[Source]:
    """Every Python file of the packages below ``root``, in order of name."""
    files = sorted(path for package in below for path in (root / package).rglob("*.py"))
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in files}
    return [Source(name=name, text=text, tree=ast.parse(text, name)) for name, text in texts.items()]


def imports(source: Source) -> Iterator[Import]:
    """All imports of a file, those for type checkers included."""
    nested = {id(inner) for function in source.functions() for inner in ast.walk(function)}
    for node in ast.walk(source.tree):
        for module in _modules(node):
            yield Import(module=module, line=node.lineno, nested=id(node) in nested)  # type: ignore[attr-defined]


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in (
        "importlib.import_module",
        "import_module",
        "__import__",
    ):
        return [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return []
