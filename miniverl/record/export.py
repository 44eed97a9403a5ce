"""This file holds the export of a run's result: a folder that is whole under its name, or not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from miniverl.contract.canonical import canonical_json
from miniverl.errors import RecordError
from miniverl.record.files import (
    make_folder,
    named_errors,
    no_space,
    remove_folder,
    rename_durably,
    sync_folder,
    write_durably,
)

MARK = "miniverl.json"
"""Names the step and the tensors that a folder holds; other programs ignore it."""

_NO_SPACE = ("os error 28", "os error 122")
"""ENOSPC and EDQUOT, as safetensors' text names them."""


def publish(folder: str | Path, write: Callable[[Path], None], *, step: int, tensor_digest: str) -> None:
    """Has ``write`` fill a draft beside ``folder``, makes it durable and gives it the name.

    Nothing happens when the folder holds that step already. An older export is replaced. Raises RecordError when a
    file has the folder's name or the disk refuses; ``folder`` is then as it was.
    """
    target = Path(folder)
    refuse_file(target)
    if exported(target) == (step, tensor_digest):
        return
    draft, aside = (target.with_name(f".{target.name}-{kind}") for kind in ("draft", "replaced"))
    for stray in (draft, aside):
        remove_folder(stray)
    try:
        make_folder(draft)
        with _writers_errors(target):
            write(draft)
            for path in sorted(draft.iterdir()):
                write_durably(path, path.read_bytes())  # others wrote it without waiting for the disk
        write_durably(draft / MARK, canonical_json({"step": step, "tensor_digest": tensor_digest}) + b"\n")
        sync_folder(draft)
        if target.exists():
            rename_durably(target, aside)
        rename_durably(draft, target)
    finally:
        remove_folder(draft)  # gone after the rename; left by a failure, it would fill the disk
    remove_folder(aside)


def exported(folder: str | Path) -> tuple[int, str] | None:
    """(step, tensor digest) of what the folder holds; None when there is no whole export."""
    mark = Path(folder) / MARK
    with named_errors(mark):
        if not mark.exists():
            return None
        data = mark.read_bytes()
    try:
        facts = json.loads(data)
        return facts["step"], facts["tensor_digest"]
    except (ValueError, TypeError, LookupError):
        return None


def refuse_file(folder: Path) -> None:
    """Raises RecordError when something other than a folder stands at ``folder``: it is somebody's, and not ours."""
    with named_errors(folder):
        taken = folder.exists() and not folder.is_dir()
    if taken:
        raise RecordError(
            str(folder), problem="a file stands where a folder must be",
            fix="move that file away, or choose another run.dir",
        )  # fmt: skip


@contextmanager
def _writers_errors(folder: Path) -> Iterator[None]:
    try:
        with named_errors(folder):
            yield
    except SafetensorError as error:
        if any(cause in str(error) for cause in _NO_SPACE):
            raise no_space(folder) from error
        raise RecordError(str(folder), problem=f"cannot be written ({error})", fix="check the disk") from error
