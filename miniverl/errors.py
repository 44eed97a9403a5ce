"""This file holds the error tree: every error names the field, the value, the problem and the fix."""

from __future__ import annotations

from typing import Any

_NOTHING = object()


class MiniverlError(Exception):
    """An error whose text a user can act on. Printed without a traceback; the exit code is not 0.

    ``field`` is a recipe key, a file or a call; ``value`` is what was found there; ``problem`` says why it cannot
    be; ``fix`` says what to write instead. Survives pickling, so it crosses an actor boundary as itself.
    """

    def __init__(self, field: str, *, value: Any = _NOTHING, problem: str, fix: str) -> None:
        self.field, self.problem, self.fix = field, problem, fix
        self.value = None if value is _NOTHING else repr(value)
        super().__init__(str(self))

    def __str__(self) -> str:
        found = self.field if self.value is None else f"{self.field} = {self.value}"
        return f"{found}: {self.problem}; {self.fix}"

    def __reduce__(self):
        return _rebuild, (type(self), self.__dict__.copy())


def _rebuild(kind: type[MiniverlError], state: dict[str, Any]) -> MiniverlError:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    Exception.__init__(error, str(error))
    return error


class ConfigError(MiniverlError):
    """A recipe, an override or a plan that cannot be run as it is written."""


class DataError(MiniverlError):
    """A file of prompts, or a row of it, that cannot be used."""


class ModelError(MiniverlError):
    """A model or tokenizer folder that is missing, incomplete or does not fit its partner."""


class PlacementError(MiniverlError):
    """A placement the machine or the Ray cluster cannot hold."""


class ContractError(MiniverlError):
    """A message between parts that breaks its own type; a bug of ours or of a foreign engine."""


class IdentityError(MiniverlError):
    """Tokens, tensors or targets offered under another policy identity than the one in force."""


class StateError(MiniverlError):
    """A call that the current state of an engine or a role does not allow."""


class RecordError(MiniverlError):
    """A run directory, journal or checkpoint that is missing, damaged, foreign or held by somebody else."""


class RoleError(MiniverlError):
    """An actor that died, hung or could not start; names the role."""


class ConformanceError(MiniverlError):
    """A rollout engine whose tokens or log-probs are not the trainer's, or an adapter that does nothing."""


class EngineError(MiniverlError):
    """A rollout engine, or the server behind it, that could not start, answer or take up a policy."""


class TrainingError(MiniverlError):
    """Training that cannot go on: no signal, diverged, or a replay that does not match its record."""


class Stopped(Exception):
    """Raised between two parcels when the user asked to stop. Not an error: the last closed step is kept."""
