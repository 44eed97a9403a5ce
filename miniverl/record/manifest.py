"""This file holds Manifest: what a checkpoint folder says about itself, written last."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miniverl.contract.canonical import canonical_json
from miniverl.errors import RecordError
from miniverl.record.files import named_errors

FILE = "manifest.json"
FOLDER = "checkpoints"
"""Where a run directory keeps them."""

STEP = re.compile(r"step-(0|[1-9][0-9]*)")
"""The whole name of a checkpoint's folder; others, such as a copy somebody put aside, are not ours."""

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """One file of a checkpoint."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Equal runs write equal manifests: no clock, host or lease inside."""

    step: int
    """Steps finished."""
    cursor: int
    """Prompts taken by them."""
    rows: int
    """Groups the journal held; a journal that holds fewer is not the one this checkpoint belongs to."""
    chain_head: str
    """Chain digest of the last of those groups."""
    files: Mapping[str, FileFacts]
    """By name inside the folder, the manifest itself left out."""
    metadata: Mapping[str, Any]
    """The trainer's own facts, as JSON."""

    def to_bytes(self) -> bytes:
        facts = {name: getattr(self, name) for name in Manifest.__dataclass_fields__}
        return canonical_json({"schema": SCHEMA, **facts})

    @property
    def digest(self) -> str:
        """SHA-256 of the file's bytes."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    @classmethod
    def read(cls, folder: Path) -> tuple[Manifest, str]:
        """The manifest of a checkpoint folder, with the SHA-256 of the bytes found."""
        path = folder / FILE
        with named_errors(path):
            data = path.read_bytes()
        try:
            facts = json.loads(data)
            if facts.pop("schema") != SCHEMA:
                raise ValueError("another schema")
            files = {name: FileFacts(**entry) for name, entry in facts.pop("files").items()}
            manifest = cls(**facts, files=files)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(
                str(path), problem=f"is not a manifest ({error})", fix="use another checkpoint"
            ) from error
        return manifest, hashlib.sha256(data).hexdigest()


def manifests(run_dir: Path) -> tuple[Manifest, ...]:
    """Of all finished checkpoint folders in a run directory, newest first; unreadable ones are passed over."""
    found = []
    for folder in (run_dir / FOLDER).glob("step-*"):
        if not STEP.fullmatch(folder.name):
            continue
        try:
            found.append(Manifest.read(folder)[0])
        except RecordError:
            continue  # whoever wants that checkpoint is told; here it is no evidence
    return tuple(sorted(found, key=lambda manifest: -manifest.step))
