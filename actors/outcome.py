"""This file holds the outcome of a call to an actor: its value, or its error with Ray's wrapping taken off."""

from __future__ import annotations

from typing import Any

import ray
from ray import ObjectRef
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from actors.shell import CONTINUES
from miniverl.errors import MiniverlError, RoleError, Stopped


def fetch(reference: ObjectRef, *, role: str, call: str, within: float | None = None) -> Any:
    """The value of a call. Raises what the role raised, as itself; for a lost role a RoleError that names it."""
    try:
        return ray.get(reference, timeout=within)
    except RayTaskError as error:
        raise unwrapped(error, role=role, call=call) from None
    except RayActorError as error:
        raise lost(role, f"its process died during {call}{_reason(error)}") from None
    except GetTimeoutError:
        raise lost(role, f"{call} has not ended within {within:.0f} s") from None
    except RayError as error:
        raise lost(role, f"{call} failed with {type(error).__name__}: {error}") from None


def unwrapped(error: RayTaskError, *, role: str, call: str) -> MiniverlError | Stopped:
    """The error as the role raised it, however many tasks it passed through."""
    cause: BaseException | None = error
    while isinstance(cause, RayTaskError):
        cause = cause.cause
    if isinstance(cause, MiniverlError | Stopped):
        return cause
    named = lost(role, f"{call} failed with {type(cause).__name__}: {cause}")
    named.add_note(str(error))
    return named


def lost(role: str, problem: str) -> RoleError:
    return RoleError(role, problem=problem, fix=CONTINUES)


def _reason(error: RayActorError) -> str:
    """Ray kills the largest process of a machine short of memory: the one death a user can do something about."""
    return ": the machine was running low on memory" if "running low on memory" in str(error) else ""
