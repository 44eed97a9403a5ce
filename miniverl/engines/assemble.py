"""This file holds the assembly of finished samples into a Group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from miniverl.contract.group import Group
from miniverl.contract.policy import PolicySnapshot
from miniverl.contract.request import GenerationRequest, Sampling

Decode = Callable[[Sequence[int]], str]
"""Token ids to text, without special tokens."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One finished response."""

    tokens: np.ndarray
    """int [length]; the stop token included."""
    logps: np.ndarray | None
    """float32 [length]; full vocabulary. None: not asked for."""
    behaviour_logps: np.ndarray | None
    """float32 [length]; renormalised over what was kept. None: nothing was cut, or not asked for."""
    stop: str | None = None
    """The stop string that ended it; its last token completes the string."""

    def cut(self, length: int, stop: str) -> Sample:
        """Its first tokens, ended by a stop string."""
        return Sample(
            tokens=self.tokens[:length],
            logps=None if self.logps is None else self.logps[:length],
            behaviour_logps=None if self.behaviour_logps is None else self.behaviour_logps[:length],
            stop=stop,
        )


def assemble(
    requests: Sequence[GenerationRequest], samples: Sequence[Sample], *, snapshot: PolicySnapshot, decode: Decode
) -> Group:
    """The group of these requests; ``samples`` stand in the same order."""
    first = requests[0]
    prompt, sampling = first.prompt, first.sampling
    ends = [_end(sample, sampling) for sample in samples]
    return Group(
        id=first.group_id,
        cursor=first.cursor,
        policy_version=snapshot.version,
        snapshot_digest=first.snapshot_digest,
        tensor_digest=snapshot.tensor_digest,
        prompt_row=prompt.row,
        prompt_digest=prompt.digest,
        prompt_ids=prompt.ids,
        data_source=prompt.data_source,
        ground_truth=prompt.ground_truth,
        seeds=np.array([request.seed for request in requests], np.int64),
        lengths=np.array([len(s.tokens) for s in samples], np.int32),
        token_ids=_padded([s.tokens for s in samples], np.int32),
        logps=_padded_scores([s.logps for s in samples]),
        behaviour_logps=_padded_scores([s.behaviour_logps for s in samples]),
        temperature=sampling.scoring_temperature,
        stop_reasons=tuple(reason for reason, _ in ends),
        stop_matches=tuple(match for _, match in ends),
        texts=tuple(_text(sample, reason, decode) for sample, (reason, _) in zip(samples, ends, strict=True)),
    )


def _end(sample: Sample, sampling: Sampling) -> tuple[str, str]:
    """Why it ended, and the id or the string that matched."""
    last = int(sample.tokens[-1])
    if sample.stop is not None:
        return "stop_string", sample.stop
    return ("stop_token", str(last)) if last in sampling.stop_token_ids else ("length", "")


def _text(sample: Sample, reason: str, decode: Decode) -> str:
    """Without the stop token, and cut before the stop string: only the text is cut, never the ids."""
    body = sample.tokens[:-1] if reason == "stop_token" else sample.tokens
    text = decode(body.tolist())
    return text if sample.stop is None else text.partition(sample.stop)[0]


def _padded(rows: Sequence[np.ndarray], dtype: type) -> np.ndarray:
    """[n, T] with zeros beyond each row's end."""
    table: np.ndarray = np.zeros((len(rows), max(len(row) for row in rows)), dtype)
    for line, row in zip(table, rows, strict=True):
        line[: len(row)] = row
    return table


def _padded_scores(rows: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """float32 [n, T]; None when the scores were not asked for."""
    given = [row for row in rows if row is not None]
    return _padded(given, np.float32) if given else None
