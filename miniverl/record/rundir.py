"""This file holds RunDirectory: where everything of a run lies."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from miniverl.contract.canonical import canonical_json
from miniverl.errors import RecordError
from miniverl.record import journal, manifest, reader
from miniverl.record.files import inside, make_folder, named_errors, write_atomically


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """The layout of a run directory, as paths. Made by ``prepare`` or ``existing``."""

    root: Path
    """Absolute, links resolved."""

    @classmethod
    def prepare(cls, path: str | Path) -> Self:
        """The directory, made where missing and found writable. Raises RecordError naming what stands in the way."""
        root = Path(path).expanduser().absolute()
        make_folder(root)
        if not os.access(root, os.W_OK | os.X_OK):
            raise RecordError(
                str(root), problem="permission denied",
                fix="give this user write permission there, or choose another run.dir",
            )  # fmt: skip
        directory = cls(root=root.resolve())
        for folder in (directory.checkpoints, directory.logs):
            make_folder(folder)
        return directory

    @classmethod
    def existing(cls, path: str | Path) -> Self:
        """The directory of a run that was started. Raises RecordError when there is none at ``path``."""
        root = Path(path).expanduser().absolute()
        if not root.is_dir() or not (root / reader.FILE).exists():
            there = "is not a run directory: it has no journal" if root.exists() else "does not exist"
            raise RecordError(str(root), problem=there, fix="name the run.dir of a run that was started")
        return cls(root=root.resolve())

    @property
    def journal(self) -> Path:
        return self.root / reader.FILE

    @property
    def lock(self) -> Path:
        return self.root / journal.LOCK

    @property
    def checkpoints(self) -> Path:
        return self.root / manifest.FOLDER

    @property
    def metrics(self) -> Path:
        """One JSON line per step."""
        return self.root / "metrics.jsonl"

    @property
    def plan(self) -> Path:
        return self.root / "plan.json"

    @property
    def recipe(self) -> Path:
        """The recipe as it was run, overrides included."""
        return self.root / "recipe.yaml"

    @property
    def final(self) -> Path:
        """The trained adapter or weights, for other programs."""
        return self.root / "final"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def inside(self, relative: str) -> Path:
        """A path in this directory. Raises RecordError when ``relative`` leads out of it."""
        return inside(self.root, relative)

    def record_plan(self, plan: object) -> None:
        """Writes plan.json: the plan's fields as canonical JSON; a number that is not finite is written by its name."""
        facts = json.loads(json.dumps(plan, default=_fields))
        write_atomically(self.plan, canonical_json(_finite(facts)) + b"\n")

    def record_recipe(self, text: str) -> None:
        """Writes recipe.yaml."""
        write_atomically(self.recipe, text.encode())

    def read_plan(self) -> Mapping[str, Any]:
        """plan.json, empty while there is none. Raises RecordError when it cannot be read."""
        if not self.plan.exists():
            return {}
        with named_errors(self.plan):
            data = self.plan.read_bytes()
        try:
            return json.loads(data)
        except ValueError as error:
            raise RecordError(
                str(self.plan), problem=f"is not JSON ({error})", fix="start the run again: it writes the file anew"
            ) from error


def _fields(value: object) -> object:
    return (
        json.loads(canonical_json(value))
        if not hasattr(value, "__dataclass_fields__")
        else {name: getattr(value, name) for name in value.__dataclass_fields__}
    )


def _finite(value: Any) -> Any:
    """The same JSON, with "inf", "-inf" and "nan" for the numbers JSON has no form for."""
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_finite(entry) for entry in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
