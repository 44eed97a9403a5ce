"""This file holds the rules about words: names that could hold anything, words with a better one, first lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import PACKAGES, Source, sources

ANYTHING = re.compile(
    r"util|helper|manager|common|misc|handler|processor|(^|_)base(_|$)|_?v\d+$|Base[A-Z]", re.IGNORECASE
)
ALLOWED_FILES = ("miniverl/engines/base.py",)
"""The engine protocol: every engine is a variation on it, so the name says enough."""

REPLACED = re.compile(r"\b(episode|experience|datum)s?\b", re.IGNORECASE)
"""We say trajectory."""

HISTORY = re.compile(r"\b(issue|PR|pull request) ?#?\d+|\b(19|20)\d\d-\d\d-\d\d\b")
"""Comments describe what is; git knows what was, and when."""

TEXT_FILES = (".py", ".md", ".yaml", ".yml", ".toml", ".txt", "")
MACHINE_PATHS = re.compile(r"(?<![\w.~$}])/(work|root|home/\w+|Users/\w+|tmp/\w+)/")
"""Absolute paths of the machine something was written on."""


def vague_names(root: Path) -> list[str]:
    """Files and classes whose name would fit any content."""
    return [complaint for source in sources(root) for complaint in _vague(source)]


def _vague(source: Source) -> Iterator[str]:
    stem = source.name.rpartition("/")[2].removesuffix(".py")
    if ANYTHING.search(stem) and source.name not in ALLOWED_FILES:
        yield f"{source.name}: the name could hold anything"
    for node in source.classes():
        if ANYTHING.search(node.name):
            yield f"{source.name}:{node.lineno} class {node.name}: the name could hold anything"


def replaced_words(root: Path) -> list[str]:
    """Lines with a word the glossary replaces."""
    return _lines(root, REPLACED)


def history(root: Path) -> list[str]:
    """Lines that name a ticket or a day."""
    return _lines(root, HISTORY)


def _lines(root: Path, pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{source.name}:{number} says {found.group(0)!r}"
        for source in sources(root)
        for number, line in enumerate(source.text.splitlines(), start=1)
        if (found := pattern.search(line.replace("_", " ")))
    ]


def first_lines(root: Path) -> list[str]:
    """Files that do not begin by saying what they hold; rooms that do not say what they are for, or import."""
    return [complaint for source in sources(root) for complaint in _first_line(source)]


def _first_line(source: Source) -> Iterator[str]:
    first = (ast.get_docstring(source.tree) or "").partition("\n")[0]
    if source.is_init:
        if len(first) < 10:
            yield f"{source.name}: no docstring that says what the room holds"
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in source.tree.body):
            yield f"{source.name}: imports; a room is entered by its files"
    elif not first.startswith("This file holds "):
        yield f'{source.name}: the docstring does not start with "This file holds"'


def machine_paths(root: Path) -> list[str]:
    """Paths of one machine in anything that is committed."""
    folders = (*PACKAGES, "tests", "docs", "configs", "scripts", ".ci")
    files = [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]
    files += [path for path in root.iterdir() if path.is_file()]
    return [
        f"{path.relative_to(root).as_posix()}:{number} has {found.group(0)!r}"
        for path in sorted(files)
        if path.suffix in TEXT_FILES and path.name != "LICENSE" and path.name != "test_words.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if (found := MACHINE_PATHS.search(line))
    ]
