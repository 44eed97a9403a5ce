"""A snapshot names a policy by every fact that could change a token, and tensors are held to the name they carry."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from miniverl.contract.canonical import tensors_digest
from miniverl.contract.policy import Policy, PolicySnapshot
from miniverl.errors import IdentityError
from tests.contract.drawn import crossed, snapshot

TENSORS = {"a": np.array([0.5, -1.5], dtype=np.float32), "b": np.zeros((2, 2), dtype=np.float32)}


def policy(**tensors: np.ndarray) -> Policy:
    """Tensors under the name of ``TENSORS``."""
    return Policy(snapshot=snapshot(tensor_digest=tensors_digest(TENSORS)), tensors={**TENSORS, **tensors})


def test_the_digest_is_locked():
    """Changing this makes every recorded policy another one."""
    assert snapshot().digest == "1a34308625934bf556ea9ebdb143052f12cabeac062524e18ed734ad5756bb3f"


@pytest.mark.parametrize("field", [field.name for field in fields(PolicySnapshot)])
def test_the_digest_moves_with_every_field(field):
    other = 4 if field == "version" else getattr(snapshot(), field) + "x"
    assert snapshot(**{field: other}).digest != snapshot().digest


def test_a_snapshot_is_the_same_in_another_process():
    assert crossed(snapshot()) == snapshot()
    assert crossed(snapshot()).digest == snapshot().digest


def test_the_tensors_that_are_named_are_accepted_here_and_in_another_process():
    policy().verify()
    crossed(policy()).verify()


@pytest.mark.parametrize(
    "tensors",
    [
        {"a": np.array([0.5, -1.25], dtype=np.float32)},
        {"a": TENSORS["a"].astype(np.float64)},
        {"b": np.zeros(4, dtype=np.float32)},
        {"c": np.zeros(1, dtype=np.float32)},
    ],
    ids=["another value", "another type", "another shape", "one too many"],
)
def test_other_tensors_than_the_named_ones_are_refused(tensors):
    with pytest.raises(IdentityError, match=r"policy\.tensors.*the snapshot of version 3 names"):
        policy(**tensors).verify()
