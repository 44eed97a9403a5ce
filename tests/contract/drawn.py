"""This file holds one prompt, group and snapshot written out by hand, for tests that lock what their digests are."""

from __future__ import annotations

import pickle
from typing import Any, TypeVar

import numpy as np

from miniverl.contract.group import Group
from miniverl.contract.policy import PolicySnapshot
from miniverl.contract.prompt import Prompt

Value = TypeVar("Value")


def prompt(*ids: int, **changes: Any) -> Prompt:
    return Prompt(**{"row": 0, "ids": ids or (5, 6, 7), "data_source": "sums", "ground_truth": "42"} | changes)


def snapshot(**changes: Any) -> PolicySnapshot:
    facts = {
        "version": 3,
        "model_id": "miniverl://tiny-student",
        "model_revision": "rev",
        "tokenizer_digest": "tok",
        "adapter_manifest": "lora",
        "tensor_digest": "tensors",
        "base_digest": "",
        "dtype": "float32",
        "quantization": "none",
        "backend": "hf_cached",
        "backend_version": "transformers 5",
        "profile": "native",
        "experiment": "exp",
    }
    return PolicySnapshot(**facts | changes)


def group(**changes: Any) -> Group:
    """Two rows of three tokens at most, the second one token long."""
    columns = {
        "id": "000000000004-0123456789ab",
        "cursor": 4,
        "policy_version": 2,
        "snapshot_digest": "5" * 64,
        "tensor_digest": "7" * 64,
        "prompt_row": 1,
        "prompt_digest": "9" * 64,
        "prompt_ids": [5, 6, 7],
        "data_source": "sums",
        "ground_truth": "42",
        "seeds": [11, 2**62],
        "lengths": [3, 1],
        "token_ids": [[8, 9, 2], [2, 0, 0]],
        "logps": [[-0.5, -0.25, -1.0], [-2.0, 0.0, 0.0]],
        "behaviour_logps": [[-0.25, -0.125, -0.5], [-1.0, 0.0, 0.0]],
        "temperature": 0.5,
        "stop_reasons": ("stop_token", "stop_token"),
        "stop_matches": ("2", "2"),
        "texts": ("42", ""),
        "reward_names": ("exact",),
        "rewards": [[1.0], [0.0]],
    }
    return Group(**columns | changes)


def of_shape(cursor: int, *, prompt_tokens: int, lengths: tuple[int, ...]) -> Group:
    """A group of which only the position and the token counts matter."""
    n, width = len(lengths), max(lengths)
    return group(
        cursor=cursor, prompt_ids=np.zeros(prompt_tokens), seeds=range(n), lengths=lengths,
        token_ids=np.zeros((n, width)), logps=None, behaviour_logps=None, stop_reasons=("length",) * n,
        stop_matches=("",) * n, texts=("",) * n, reward_names=(), rewards=None,
    )  # fmt: skip


def crossed(value: Value) -> Value:
    """``value`` after a process border. Ray pickles with the highest protocol."""
    return pickle.loads(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
