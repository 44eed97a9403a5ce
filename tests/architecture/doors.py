"""This file holds the doors: which files may import what, read the environment or catch everything."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.architecture.sources import Source, imports, sources

DOORS: Mapping[str, str] = {
    "ray": r"actors/.*",
    "wandb": r"miniverl/metrics/sinks\.py",
    "yaml": r"miniverl/recipe/load\.py",
    "httpx": r"miniverl/engines/vllm/.*",
    "omegaconf": r"miniverl/profiles/load\.py",
    "hydra": r"miniverl/profiles/load\.py",
}
"""By library: the files that may import it, as a pattern over their whole name."""

LAZY = r"(miniverl/cli|actors)/.*|miniverl/(api|__init__)\.py|miniverl/metrics/sinks\.py"
"""Files whose functions may import: what they need is heavy or optional (W&B), and most calls do without it."""

ENVIRONMENT = r"miniverl/cli/.*|actors/.*|miniverl/engines/vllm/server\.py"
"""Files that may read environment variables: a server inherits them. Everybody else gets what they need by the
constructor."""


def wrong_doors(root: Path) -> list[str]:
    """Imports of a guarded library outside its files."""
    return [
        f"{source.name}:{found.line} imports {found.module}; only {door} may"
        for source in sources(root)
        for found in imports(source)
        if (door := DOORS.get(found.top)) and not re.fullmatch(door, source.name)
    ]


def late_imports(root: Path) -> list[str]:
    """Imports inside functions, outside the few files that start other things."""
    return [
        f"{source.name}:{found.line} imports {found.module} inside a function"
        for source in sources(root)
        if not re.fullmatch(LAZY, source.name)
        for found in imports(source)
        if found.nested
    ]


def environment_readers(root: Path) -> list[str]:
    """Uses of os.environ or os.getenv elsewhere."""
    return [
        f"{source.name}:{node.lineno} reads the environment"
        for source in sources(root)
        if not re.fullmatch(ENVIRONMENT, source.name)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv", "os.putenv")
    ]


def broad_excepts(root: Path) -> list[str]:
    """Every handler that catches whatever comes."""
    return [where for source in sources(root) for where in _broad(source)]


def _broad(source: Source) -> Iterator[str]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler):
            names = {"BaseException"} if node.type is None else {ast.unparse(part) for part in ast.walk(node.type)}
            if names & {"Exception", "BaseException"}:
                yield f"{source.name}:{node.lineno}"


def partial_oracles(root: Path) -> list[str]:
    """Slow twins that import what they judge: they may know the contract types and the seeds, nothing else."""
    allowed = ("miniverl.contract", "miniverl.seeds", "miniverl.errors")
    return [
        f"{source.name}:{found.line} imports {found.module}"
        for source in sources(root, below=("tests/oracle",))
        for found in imports(source)
        if found.top in ("miniverl", "actors") and not f"{found.module}.".startswith(tuple(f"{a}." for a in allowed))
    ]
