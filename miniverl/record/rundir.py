"""This file holds RunDirectory: where everything of a run lies."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from miniverl.contract.canonical import canonical_json
from miniverl.errors import RecordError
from miniverl.record import journal, manifest, reader
from miniverl.record.export import refuse_file
from miniverl.record.files import inside, make_folder, named_errors, write_atomically
from miniverl.record.finite import finite


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """The layout of a run directory, as paths. Made by ``prepare`` or ``existing``."""

    root: Path
    """Absolute, links resolved."""

    @classmethod
    def prepare(cls, path: str | Path) -> Self:
        """The directory, made where missing and found writable. Raises RecordError naming what stands in the way."""
        with _named_path(path):
            root = Path(path).expanduser().absolute()
            make_folder(root)
            directory = cls(root=root.resolve())
        for folder in (directory.root, directory.checkpoints, directory.logs):
            make_folder(folder)
            _refuse_unwritable(folder)
        refuse_file(directory.final)  # told before the training, not after it
        return directory

    @classmethod
    def existing(cls, path: str | Path) -> Self:
        """The directory of a run that was started. Raises RecordError when there is none at ``path``."""
        with _named_path(path):
            root = Path(path).expanduser().absolute()
            if root.is_dir() and (root / reader.FILE).exists():
                return cls(root=root.resolve())
            there = "is not a run directory: it has no journal" if root.exists() else "does not exist"
        raise RecordError(str(root), problem=there, fix="name the run.dir of a run that was started")

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
        write_atomically(self.plan, canonical_json(finite(facts)) + b"\n")

    def read_plan(self) -> Mapping[str, Any]:
        """plan.json, empty while there is none. Raises RecordError when it cannot be read."""
        with named_errors(self.plan):
            if not self.plan.exists():
                return {}
            data = self.plan.read_bytes()
        try:
            facts = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._odd_plan(f"is not JSON ({error})") from error
        if not isinstance(facts, dict):
            raise self._odd_plan("is not a plan: an object is expected")
        for name in ("schedule", "execution_facts"):
            if not isinstance(facts.get(name, {}), dict):
                raise self._odd_plan(f"is not a plan: its {name} should be an object")
        total = facts.get("schedule", {}).get("total_training_steps", 0)
        if not isinstance(total, int):
            raise self._odd_plan("is not a plan: its schedule.total_training_steps should be a whole number")
        return facts

    def _odd_plan(self, problem: str) -> RecordError:
        return RecordError(str(self.plan), problem=problem, fix="start the run again: it writes the file anew")


def _fields(value: object) -> object:
    return (
        json.loads(canonical_json(value))
        if not hasattr(value, "__dataclass_fields__")
        else {name: getattr(value, name) for name in value.__dataclass_fields__}
    )


@contextmanager
def _named_path(path: str | Path) -> Iterator[None]:
    """Whatever is wrong with the path itself, or with the way to it, leaves as a RecordError that names it."""
    try:
        with named_errors(path):
            yield
    except (RuntimeError, ValueError) as error:  # no such user after ~, links in a circle; a zero byte
        raise RecordError(str(path), problem=f"is not a path ({error})", fix="write another run.dir") from error


def _refuse_unwritable(folder: Path) -> None:
    """Only writing tells: permission bits know nothing of a read-only mount."""
    probe = folder / f".writable-{os.getpid()}"
    with named_errors(folder):
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        probe.unlink()
