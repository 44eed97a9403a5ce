"""This file holds checkpoints: folders of tensors that are whole on disk before their name appears."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from miniverl.contract.report import Checkpoint
from miniverl.errors import RecordError
from miniverl.record import manifest as manifests
from miniverl.record.facts import Facts
from miniverl.record.files import (
    inside,
    make_folder,
    named_errors,
    remove_folder,
    rename_durably,
    sync_folder,
    write_durably,
)
from miniverl.record.manifest import FOLDER, FileFacts, Manifest

_DRAFT = ".tmp-"
_DRAFTS = re.compile(r"\.tmp-[0-9]+-[0-9]+(\.[0-9]+)?(-replaced(\.[0-9]+)?)?")
"""Every name ``write_checkpoint`` gives to what is not finished."""

_FIX = "use an older checkpoint, or put an undamaged copy of the folder back"


def write_checkpoint(
    run_dir: str | Path,
    *,
    step: int,
    facts: Facts,
    tensors: Mapping[str, Mapping[str, np.ndarray]],
    metadata: Mapping[str, Any],
    scheduled: bool,
) -> Checkpoint:
    """Writes ``checkpoints/step-N`` and verifies it. It exists once the journal names it.

    ``facts``: the journal's, as of ``step``; its lease only names the draft. ``tensors``: for each safetensors file,
    its arrays by name. ``metadata``: JSON that equal runs share. Equal arguments write equal bytes. A folder of that
    name is replaced, unless it holds the very same checkpoint already. Raises RecordError when the disk refuses or
    does not give back what was written.
    """
    parent = Path(run_dir) / FOLDER
    make_folder(parent)
    draft = _free_name(parent, f"{_DRAFT}{facts.lease}-{step}")
    make_folder(draft)
    try:
        files = {name: _write_tensors(draft, name, arrays) for name, arrays in sorted(tensors.items())}
        manifest = Manifest(
            step=step, cursor=facts.cursor, rows=facts.rows, chain_head=facts.chain_head,
            files=files, metadata=metadata,
        )  # fmt: skip
        write_durably(draft / manifests.FILE, manifest.to_bytes())
        sync_folder(draft)
        _read_back(draft, manifest.digest)
        _put_in_place(draft, parent / f"step-{step}", manifest.digest)
    finally:
        remove_folder(draft)
    return Checkpoint(step=step, folder=f"{FOLDER}/step-{step}", manifest_digest=manifest.digest, scheduled=scheduled)


def verify_checkpoint(run_dir: str | Path, checkpoint: Checkpoint) -> Manifest:
    """The manifest of a checkpoint the journal names, once every byte of the folder agrees with it.

    Raises RecordError naming the file that is missing, too short, too long or altered.
    """
    folder = inside(Path(run_dir), checkpoint.folder)
    return _read_back(folder, checkpoint.manifest_digest)


def read_checkpoint(folder: str | Path) -> tuple[dict[str, dict[str, np.ndarray]], Manifest]:
    """Arrays by name by file name, and the manifest, with every file verified against it."""
    folder = Path(folder)
    manifest, _ = Manifest.read(folder)
    return {name: _read_tensors(folder / name, facts) for name, facts in manifest.files.items()}, manifest


def sweep(run_dir: str | Path, named: Iterable[Checkpoint]) -> tuple[str, ...]:
    """Removes drafts, and checkpoint folders no row of the journal names. Returns the names removed.

    What is named otherwise is not ours and stays. Only for the process that holds the journal, before it saves
    anything.
    """
    parent = Path(run_dir) / FOLDER
    keep = {Path(checkpoint.folder).name for checkpoint in named}
    if not parent.is_dir():
        return ()
    strays = sorted(
        path
        for path in parent.iterdir()
        if (_DRAFTS.fullmatch(path.name) or manifests.STEP.fullmatch(path.name)) and path.name not in keep
    )
    for path in strays:
        remove_folder(path)
    return tuple(path.name for path in strays)


def _write_tensors(folder: Path, name: str, arrays: Mapping[str, np.ndarray]) -> FileFacts:
    assert name == Path(name).name and name != manifests.FILE, f"{name} is not a name of a tensor file"
    ordered = {key: np.asarray(arrays[key], order="C") for key in sorted(arrays)}
    # One fixed entry: safetensors writes several in an order of its own.
    data = save(ordered, metadata={"format": "pt"})
    write_durably(folder / name, data)
    return FileFacts(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())


def _read_back(folder: Path, digest: str) -> Manifest:
    manifest, found = Manifest.read(folder)
    if found != digest:
        raise RecordError(
            str(folder / manifests.FILE), value=found[:12], problem=f"was {digest[:12]} when it was recorded", fix=_FIX
        )
    for name, facts in manifest.files.items():
        _verified(folder / name, facts)
    return manifest


def _verified(path: Path, facts: FileFacts) -> bytes:
    with named_errors(path):
        data = path.read_bytes()
    if len(data) != facts.bytes:
        raise RecordError(str(path), value=len(data), problem=f"should be {facts.bytes} bytes long", fix=_FIX)
    found = hashlib.sha256(data).hexdigest()
    if found != facts.sha256:
        raise RecordError(str(path), value=found[:12], problem=f"was {facts.sha256[:12]} when it was written", fix=_FIX)
    return data


def _read_tensors(path: Path, facts: FileFacts) -> dict[str, np.ndarray]:
    data = _verified(path, facts)
    try:
        return load(data)
    except SafetensorError as error:
        raise RecordError(str(path), problem=f"is not a safetensors file ({error})", fix=_FIX) from error


def _put_in_place(draft: Path, target: Path, digest: str) -> None:
    if target.exists() and _holds(target, digest):
        return
    if target.exists():  # left by a life that ended before its row, or damaged since
        aside = _free_name(target.parent, f"{draft.name}-replaced")
        rename_durably(target, aside)
        rename_durably(draft, target)
        remove_folder(aside)
    else:
        rename_durably(draft, target)


def _holds(folder: Path, digest: str) -> bool:
    try:
        _read_back(folder, digest)
    except RecordError:
        return False
    return True


def _free_name(parent: Path, name: str) -> Path:
    return next(path for n in count() if not (path := parent / (f"{name}.{n}" if n else name)).exists())
