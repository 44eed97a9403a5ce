"""This file holds the export of a run's result: a folder that is whole under its name, or not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from miniverl.contract.canonical import canonical_json
from miniverl.record.files import make_folder, remove_folder, rename_durably, sync_folder, write_durably

MARK = "miniverl.json"
"""Names the step and the tensors that a folder holds; other programs ignore it."""


def publish(folder: str | Path, write: Callable[[Path], None], *, step: int, tensor_digest: str) -> None:
    """Has ``write`` fill a draft beside ``folder``, makes it durable and gives it the name.

    Nothing happens when the folder holds that step already. An older export is replaced.
    """
    target = Path(folder)
    if exported(target) == (step, tensor_digest):
        return
    draft, aside = (target.with_name(f".{target.name}-{kind}") for kind in ("draft", "replaced"))
    for stray in (draft, aside):
        remove_folder(stray)
    make_folder(draft)
    write(draft)
    for path in sorted(draft.iterdir()):
        write_durably(path, path.read_bytes())  # others wrote it without waiting for the disk
    write_durably(draft / MARK, canonical_json({"step": step, "tensor_digest": tensor_digest}) + b"\n")
    sync_folder(draft)
    if target.exists():
        rename_durably(target, aside)
    rename_durably(draft, target)
    remove_folder(aside)


def exported(folder: str | Path) -> tuple[int, str] | None:
    """(step, tensor digest) of what the folder holds; None when there is no whole export."""
    mark = Path(folder) / MARK
    if not mark.exists():
        return None
    facts = json.loads(mark.read_bytes())
    return facts["step"], facts["tensor_digest"]
