"""This file holds the payload of a group: its Arrow stream, one row per trajectory, that any Arrow reader opens.

Columns: seed, length, token_ids, logps, behaviour_logps, stop_reason, stop_match, text, rewards. A column that the
group does not have is absent. Facts of the whole group are canonical JSON under the schema's key ``group``.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from miniverl.contract.arrays import valid
from miniverl.contract.canonical import canonical_json
from miniverl.contract.group import SCHEMA_VERSION, Group
from miniverl.errors import ContractError, RecordError

_FACTS = (
    "id", "cursor", "policy_version", "snapshot_digest", "tensor_digest", "prompt_row", "prompt_digest",
    "data_source", "ground_truth", "temperature", "reward_names",
)  # fmt: skip
_RAGGED = ("token_ids", "logps", "behaviour_logps")
_KEY = b"group"
_UNREADABLE = (
    pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, ContractError
)  # fmt: skip
"""What damaged bytes can raise on their way through Arrow, JSON, numpy and Group."""


def to_bytes(group: Group) -> bytes:
    """The group as one Arrow IPC stream, without padding."""
    columns = {
        "seed": pa.array(group.seeds),
        "length": pa.array(group.lengths),
        "stop_reason": pa.array(group.stop_reasons, pa.string()),
        "stop_match": pa.array(group.stop_matches, pa.string()),
        "text": pa.array(group.texts, pa.string()),
    }
    for name in _RAGGED:
        rows = getattr(group, name)
        if rows is not None:
            columns[name] = _lists(valid(rows, group.lengths), group.lengths)
    if group.rewards is not None:
        columns["rewards"] = _lists(group.rewards.reshape(-1), np.full(group.samples, len(group.reward_names)))
    facts = {name: getattr(group, name) for name in _FACTS} | {"prompt_ids": group.prompt_ids.tolist()}
    table = pa.table(columns).replace_schema_metadata({_KEY: canonical_json({"version": SCHEMA_VERSION, **facts})})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_bytes(payload: bytes, *, digest: str, group_id: str) -> Group:
    """The group a payload holds. Raises RecordError naming the group unless it is exactly the one ``digest`` names."""
    try:
        group = _decode(payload)
        found = group.digest
    except _UNREADABLE as error:
        raise _damaged(group_id, "cannot be read") from error
    if found != digest:
        raise _damaged(group_id, f"has digest {found[:12]}, recorded was {digest[:12]}")
    return group


def _decode(payload: bytes) -> Group:
    with pa.ipc.open_stream(payload) as reader:
        table = reader.read_all().combine_chunks()
    table.validate(full=True)  # damaged offsets would make Arrow read outside its buffers
    facts = json.loads(table.schema.metadata[_KEY])
    if facts.pop("version") != SCHEMA_VERSION:
        raise ValueError("another trajectory schema")
    lengths = table["length"].to_numpy()
    ragged = {name: _padded(table, name, lengths) for name in _RAGGED if name in table.column_names}
    names = tuple(facts.pop("reward_names"))
    rewards = _values(table, "rewards").reshape(len(lengths), len(names)) if "rewards" in table.column_names else None
    return Group(
        **facts,
        seeds=table["seed"].to_numpy(),
        lengths=lengths,
        token_ids=ragged["token_ids"],
        logps=ragged.get("logps"),
        behaviour_logps=ragged.get("behaviour_logps"),
        stop_reasons=tuple(table["stop_reason"].to_pylist()),
        stop_matches=tuple(table["stop_match"].to_pylist()),
        texts=tuple(table["text"].to_pylist()),
        reward_names=names,
        rewards=rewards,
    )


def _lists(values: np.ndarray, lengths: np.ndarray) -> pa.ListArray:
    """Flat values cut into one list per row."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


def _values(table: pa.Table, name: str) -> np.ndarray:
    """The column's flat values, rows one after the other."""
    return np.concatenate([chunk.flatten().to_numpy() for chunk in table[name].chunks])


def _padded(table: pa.Table, name: str, lengths: np.ndarray) -> np.ndarray:
    """[n, T]; the rows of a list column, with zeros beyond their lengths."""
    if not len(lengths) or lengths.min() < 1:
        raise ValueError("a row without tokens")
    values = _values(table, name)
    if len(values) != lengths.sum():
        raise ValueError("lists and lengths disagree")
    rows = np.zeros((len(lengths), int(lengths.max())), values.dtype)
    rows[np.arange(rows.shape[1])[None, :] < lengths[:, None]] = values
    return rows


def _damaged(group_id: str, problem: str) -> RecordError:
    return RecordError(
        f"group {group_id}",
        problem=f"its payload in the journal {problem}",
        fix="put an undamaged copy of the journal back, or start the run again in another run.dir",
    )
