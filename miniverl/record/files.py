"""This file holds the writing of files: every byte the run directory receives passes here, and is on disk after."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from miniverl.errors import RecordError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_REASONS = {
    errno.EACCES: ("permission denied", "give this user write permission there, or choose another run.dir"),
    errno.EPERM: ("permission denied", "give this user write permission there, or choose another run.dir"),
    errno.EROFS: ("the file system is read-only", "choose another run.dir"),
    errno.ENOTDIR: ("a file stands where a folder must be", "move that file away, or choose another run.dir"),
    errno.EEXIST: ("a file stands where a folder must be", "move that file away, or choose another run.dir"),
    errno.EISDIR: ("a folder stands where a file must be", "move that folder away, or choose another run.dir"),
    errno.ENOENT: ("is missing", "choose another run.dir, or put back what was removed"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter run.dir"),
}


def no_space(path: Path | str, *, needed: int | None = None) -> RecordError:
    """The error of a full disk; ``needed`` is in bytes, where it is known."""
    amount = "" if needed is None else f" for {needed:,} bytes"
    try:
        free = f" ({shutil.disk_usage(Path(path).parent).free:,} bytes are free)"
    except OSError:
        free = ""
    return RecordError(
        str(path),
        problem=f"no space left{amount}{free}",
        fix="free some space and start the same command again; what was recorded before is intact",
    )


@contextmanager
def named_errors(path: Path | str, *, needed: int | None = None) -> Iterator[None]:
    """Whatever the operating system refuses inside leaves as a RecordError that names ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise no_space(path, needed=needed) from error
        fallback = (error.strerror or str(error), "check the disk, or choose another run.dir")
        problem, fix = _REASONS.get(error.errno or 0, fallback)
        raise RecordError(str(path), problem=problem, fix=fix) from error


def write_durably(path: Path, data: bytes) -> None:
    """Writes a new file and waits until its bytes are on disk. Its name is durable after ``sync_folder``."""
    with named_errors(path, needed=len(data)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces ``path`` by ``data``: a reader, or a crash, sees the old bytes or the new ones, never a mixture."""
    draft = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        write_durably(draft, data)
        rename_durably(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Makes the names inside ``folder`` durable."""
    with named_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def rename_durably(source: Path, target: Path) -> None:
    """Renames within one folder. ``target`` may be a file, or absent, or an empty folder."""
    with named_errors(target):
        os.rename(source, target)
    sync_folder(target.parent)


def make_folder(folder: Path) -> None:
    """Creates a folder and its parents; one that exists stays as it is."""
    with named_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)


def remove_folder(folder: Path) -> None:
    """Removes a folder of ours and all that is in it; a link is removed, not followed."""
    with named_errors(folder):
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)


def inside(root: Path, relative: str) -> Path:
    """The path ``relative`` names under ``root``. Raises RecordError when it leads out, by dots, root or link."""
    path = (root / relative).resolve()
    if path == root.resolve() or not path.is_relative_to(root.resolve()):
        raise RecordError(
            str(root), value=relative, problem="leads out of the run directory", fix="name a path inside it"
        )
    return path
