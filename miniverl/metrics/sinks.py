"""This file holds the sinks a run's metrics go to: metrics.jsonl and W&B, behind one fan-out."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from miniverl.contract.report import Evaluation, StepReport
from miniverl.errors import ConfigError, RecordError
from miniverl.metrics.declared import ACCURACY, BY_NAME

Row = Mapping[str, float]
"""Values of one step by declared name."""


class Sink(Protocol):
    def log(self, step: int, metrics: Row) -> None:
        """Takes a step's row. Steps come in order; one that is here already changes nothing (a replay logs again)."""

    def close(self) -> None:
        """Nothing is logged afterwards."""


class Metrics:
    """Every row to every sink."""

    def __init__(self, sinks: Sequence[Sink], *, logged: Iterable[int] = ()) -> None:
        """``logged``: steps whose rows the sinks have from an earlier life."""
        self._sinks = tuple(sinks)
        self._logged = {0, *logged}
        self._evaluated: dict[int, dict[str, float]] = {}

    def log(self, step: int, metrics: Row) -> None:
        """One row a step, under declared names only; an evaluation of the step joins it."""
        unknown = metrics.keys() - BY_NAME.keys()
        assert not unknown, f"metrics that miniverl/metrics/declared.py does not declare: {sorted(unknown)}"
        row = {**metrics, **self._evaluated.pop(step, {})}
        self._logged.add(step)
        for sink in self._sinks:
            sink.log(step, row)

    def evaluated(self, evaluation: Evaluation) -> None:
        """An evaluation waits for the row of its step, or joins it at once when that row is there already.

        The one before training is a row of its own, step 0.
        """
        self._evaluated |= _rows_of((), (evaluation,))
        if evaluation.step in self._logged and evaluation.step in self._evaluated:
            self.log(evaluation.step, {})

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()


def recorded_rows(reports: Iterable[StepReport], evaluations: Iterable[Evaluation] = ()) -> dict[int, dict[str, float]]:
    """What an earlier life of the run has logged, by step in order: the journal's reports and evaluations."""
    return dict(sorted(_rows_of(reports, evaluations).items()))


def _rows_of(reports: Iterable[StepReport], evaluations: Iterable[Evaluation]) -> dict[int, dict[str, float]]:
    rows = {report.step: dict(report.metrics) for report in reports}
    for evaluation in evaluations:
        if evaluation.subject == "student":
            rows.setdefault(evaluation.step, {})[ACCURACY.name] = evaluation.accuracy
    return rows


class JsonlSink:
    """metrics.jsonl: one JSON object a step, in order. It derives from the journal: equal runs write equal bytes."""

    def __init__(self, path: str | Path, reports: Iterable[StepReport], evaluations: Iterable[Evaluation] = ()) -> None:
        """Rewrites the file from what the journal holds, atomically: a resumed run doubles no line and lacks none.

        Raises RecordError where the file cannot be written.
        """
        self._path = Path(path)
        self._rows = recorded_rows(reports, evaluations)
        self._rewrite()

    def log(self, step: int, metrics: Row) -> None:
        known = self._rows.get(step)
        row = {**(known or {}), **_reproducible(metrics)}
        if row == known:
            return
        self._rows[step] = row
        if known is not None:  # a run that died between a step and its evaluation adds the accuracy now
            self._file.close()
            self._rewrite()
            return
        try:
            self._file.write(_line(step, row))
            self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        self._file.close()

    def _rewrite(self) -> None:
        draft = self._path.with_name(f".{self._path.name}.tmp")
        try:
            draft.write_text("".join(_line(step, row) for step, row in sorted(self._rows.items())), encoding="utf-8")
            os.replace(draft, self._path)
            self._file = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> RecordError:
        return RecordError(
            str(self._path),
            problem=f"cannot be written: {error.strerror}",
            fix="give the run directory space and write permission, or choose another run.dir",
        )


def _reproducible(row: Row) -> dict[str, float]:
    """Without side facts, which would make equal runs differ."""
    return {name: value for name, value in row.items() if name not in BY_NAME or not BY_NAME[name].side}


def _line(step: int, row: Row) -> str:
    """JSON has no NaN; what is not finite becomes null."""
    values = {name: value if math.isfinite(value) else None for name, value in sorted(row.items())}
    return json.dumps({"step": step, **values}, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WandbRun:
    """Which W&B run the rows go to."""

    project: str
    name: str
    id: str
    """Chosen once and stored by the caller: the same id again continues the same run."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Shown beside the curves."""

    def __post_init__(self) -> None:
        assert self.project and self.name and self.id

    def honouring(self, environ: Mapping[str, str]) -> WandbRun:
        """With WANDB_PROJECT, WANDB_NAME and WANDB_RUN_ID, where set, in place of its own."""
        return WandbRun(
            project=environ.get("WANDB_PROJECT") or self.project,
            name=environ.get("WANDB_NAME") or self.name,
            id=environ.get("WANDB_RUN_ID") or self.id,
            config=self.config,
        )


class WandbSink:
    """W&B, which may help a run but never end it: without a key or a service the rows are kept offline, and said."""

    def __init__(
        self,
        run: WandbRun,
        *,
        folder: str | Path,
        environ: Mapping[str, str],
        recorded: Mapping[int, Row],
        say: Callable[[str], None],
    ) -> None:
        """``folder``: the run directory, where W&B keeps its files. ``recorded``: rows of earlier lives.

        A continued online run gets the recorded rows it lacks. An offline one has those of its own life only: what an
        earlier life wrote lies in a folder of its own beside it. Raises ConfigError where wandb is not installed.
        """
        self._wandb = _wandb()
        self._say = say
        self.run = run.honouring(environ)
        self._last = -1
        mode = self._mode(environ)
        self._live = None if mode == "disabled" else self._started(Path(folder), mode)
        if self._live is not None:
            self._last = max(recorded, default=-1) if self._live.offline else self._live.step - 1
            for step, row in recorded.items():
                self.log(step, row)

    def log(self, step: int, metrics: Row) -> None:
        if self._live is None or step <= self._last:
            return
        self._last = step
        try:
            # Without commit a row given a step waits for the next one, and a killed run would lose it.
            self._live.log(dict(metrics), step=step, commit=True)
        except (self._wandb.Error, OSError) as error:
            self._give_up(error)

    def close(self) -> None:
        live, self._live = self._live, None
        if live is None:
            return
        try:
            live.finish()
        except (self._wandb.Error, OSError) as error:
            self._give_up(error)

    def _mode(self, environ: Mapping[str, str]) -> str:
        """WANDB_MODE where it is set; online only with a key that the service has accepted."""
        asked = environ.get("WANDB_MODE") or "online"
        if asked not in WANDB_MODES:
            raise ConfigError("WANDB_MODE", value=asked, problem="unknown", fix=f"use one of {', '.join(WANDB_MODES)}")
        if asked != "online":
            return WANDB_MODES[asked]
        try:
            if self._wandb.login(prompt=False):  # never asks: a run must not wait for somebody at the keyboard
                return "online"
            reason = "no API key was found"
        except (self._wandb.Error, OSError) as error:
            reason = str(error)
        self._say(f"W&B: {reason}; logging offline (set WANDB_API_KEY or run `wandb login` to log online)")
        return "offline"

    def _started(self, folder: Path, mode: str) -> Any:
        """The W&B run; None where it would not start, which is said."""
        try:
            live = self._wandb.init(
                project=self.run.project,
                name=self.run.name,
                id=self.run.id,
                config=dict(self.run.config),
                dir=str(folder),
                mode=mode,
                resume="allow" if mode == "online" else None,
                settings=self._wandb.Settings(console="off", silent=True, init_timeout=30, finish_timeout=60),
            )
        except (self._wandb.Error, OSError) as error:
            self._give_up(error)
            return None
        self._say(f"W&B: {live.url}" if mode == "online" else f"W&B: offline run {self.run.id} under {folder}/wandb")
        return live

    def _give_up(self, error: Exception) -> None:
        self._live = None
        self._say(
            f"W&B: stopped ({str(error) or type(error).__name__}); the run goes on, its rows are in metrics.jsonl"
        )


WANDB_MODES = {"online": "online", "offline": "offline", "dryrun": "offline", "disabled": "disabled"}
"""What WANDB_MODE may be, and what it means here."""


def _wandb() -> Any:
    try:
        import wandb  # only a run that asked for W&B pays for its import
    except ImportError as error:
        raise ConfigError(
            "tracking.sinks",
            value="wandb",
            problem="the package wandb is not installed",
            fix="pip install wandb, or take wandb out of the list",
        ) from error
    return wandb
