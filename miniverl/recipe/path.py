"""This file holds the looking at paths that a user wrote: what lies there, or an error that names the key."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Literal

from miniverl.errors import ConfigError, MiniverlError

Kind = Literal["file", "folder", "nothing"]


def expanded(name: str | Path, *, field: str, refusal: type[MiniverlError] = ConfigError) -> Path:
    """The path of ``name``, ``~`` being home. Raises ``refusal`` for an unknown home and for what is not UTF-8."""
    try:
        str(name).encode()  # names enter digests and messages, which are UTF-8
        return Path(name).expanduser()
    except (RuntimeError, ValueError) as error:
        raise _refused(name, error, field=field, refusal=refusal) from None


def absolute(name: str | Path, *, field: str, refusal: type[MiniverlError] = ConfigError, links: bool = False) -> Path:
    """As ``expanded``, from the current directory; with ``links`` they are resolved, the last one included."""
    path = expanded(name, field=field, refusal=refusal)
    try:
        path = path.resolve() if links else path.absolute()
        str(path).encode()
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(name, error, field=field, refusal=refusal) from None
    return path


def kind_of(path: Path, *, field: str, refusal: type[MiniverlError] = ConfigError) -> Kind:
    """What lies at ``path``. Raises ``refusal`` where that cannot be known: no permission, a name too long, a loop."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except (OSError, ValueError) as error:
        raise _refused(path, error, field=field, refusal=refusal) from None
    return "folder" if stat.S_ISDIR(mode) else "file"


def _refused(name: str | Path, error: Exception, *, field: str, refusal: type[MiniverlError]) -> MiniverlError:
    reason = getattr(error, "strerror", None) or error
    fix = "correct the path, or let this user read it and enter its folders"
    return refusal(field, value=str(name), problem=f"cannot be looked at ({reason})", fix=fix)
