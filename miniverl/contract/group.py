"""This file holds Group: all n samples of one prompt, columnar, with the identity of the policy that drew them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields

import numpy as np

from miniverl.contract.arrays import frozen, valid
from miniverl.contract.canonical import canonical_json, little_endian
from miniverl.errors import ContractError

SCHEMA_VERSION = 3
"""Trajectory schema; enters every group's digest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """n trajectories of one prompt. Token ids are the sampled ids; nothing here is ever re-tokenised.

    Rows are padded to the longest response, T; what lies beyond a row's length means nothing. Wall-clock times and
    host names are never part of a group: equal draws give equal groups.
    """

    id: str
    cursor: int
    policy_version: int
    snapshot_digest: str
    tensor_digest: str
    """Digest of the trainable tensors that sampled it; with version and experiment, what a replay matches on."""
    prompt_row: int
    prompt_digest: str
    prompt_ids: np.ndarray
    """int32 [P]."""
    data_source: str
    ground_truth: str | None
    seeds: np.ndarray
    """int64 [n]; the sample seeds."""
    lengths: np.ndarray
    """int32 [n]; response tokens, the stop token included."""
    token_ids: np.ndarray
    """int32 [n, T]."""
    logps: np.ndarray | None
    """float32 [n, T]; log-prob of each sampled token at the request's temperature, full vocabulary. None: not given."""
    behaviour_logps: np.ndarray | None
    """float32 [n, T]; renormalised over what top-p/top-k kept. None when nothing was cut: equal to ``logps``."""
    temperature: float
    """What ``logps`` were taken at."""
    stop_reasons: tuple[str, ...]
    """Per row: stop_token, stop_string or length."""
    stop_matches: tuple[str, ...]
    """Per row: the id or the string that matched; "" for length."""
    texts: tuple[str, ...]
    """Per row: the response as text, without special tokens and cut before a stop string."""
    reward_names: tuple[str, ...] = ()
    rewards: np.ndarray | None = None
    """float32 [n, len(reward_names)]; None until scored, or when the objective needs none."""

    def __post_init__(self) -> None:
        for name, dtype in (("prompt_ids", np.int32), ("seeds", np.int64), ("lengths", np.int32),
                            ("token_ids", np.int32), ("logps", np.float32), ("behaviour_logps", np.float32),
                            ("rewards", np.float32)):  # fmt: skip
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), dtype))
        n, width = self.token_ids.shape
        shapes = {
            "prompt_ids": (self.prompt_ids.size,), "seeds": (n,), "lengths": (n,), "logps": (n, width),
            "behaviour_logps": (n, width), "stop_reasons": (n,), "stop_matches": (n,), "texts": (n,),
            "rewards": (n, len(self.reward_names)),
        }  # fmt: skip
        for name, shape in shapes.items():
            column = getattr(self, name)
            if column is not None and np.shape(column) != shape:
                raise ContractError(
                    f"Group.{name}", value=np.shape(column), problem=f"expected {shape}", fix="a bug of ours"
                )
        if not n or self.lengths.min() < 1 or self.lengths.max() > width:
            raise ContractError(
                "Group.lengths", value=self.lengths.tolist(), problem=f"outside 1..{width}", fix="a bug of ours"
            )

    @property
    def samples(self) -> int:
        return len(self.lengths)

    @property
    def response_tokens(self) -> int:
        return int(self.lengths.sum())

    @property
    def longest(self) -> int:
        """Tokens of the longest row, prompt included."""
        return len(self.prompt_ids) + int(self.lengths.max())

    def behaviour(self) -> np.ndarray | None:
        """float32 [n, T]; log-probs of the distribution the tokens were really drawn from."""
        return self.logps if self.behaviour_logps is None else self.behaviour_logps

    def trajectory(self, index: int) -> Trajectory:
        return Trajectory(group=self, index=index)

    @property
    def digest(self) -> str:
        """SHA-256 over the columns: name, dtype, lengths, valid entries row after row, little-endian."""
        digest = hashlib.sha256(f"miniverl-group-{SCHEMA_VERSION}".encode())
        for field in fields(self):
            value = getattr(self, field.name)
            digest.update(f"\x00{field.name}\x00".encode())
            if isinstance(value, np.ndarray):
                if field.name in ("token_ids", "logps", "behaviour_logps"):
                    value = valid(value, self.lengths)
                digest.update(f"{value.dtype.str[1:]}{value.shape}".encode())
                digest.update(little_endian(value))
            else:
                digest.update(canonical_json(value))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trajectory:
    """A row of a group, without its padding."""

    group: Group
    index: int

    @property
    def response_ids(self) -> np.ndarray:
        """int32 [length]."""
        return self.group.token_ids[self.index, : self.group.lengths[self.index]]

    @property
    def ids(self) -> np.ndarray:
        """int32 [P + length]; prompt and response."""
        return np.concatenate([self.group.prompt_ids, self.response_ids])
