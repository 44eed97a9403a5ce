"""A teacher says exactly one thing about every position, and what it said cannot be changed."""

from __future__ import annotations

import numpy as np
import pytest

from miniverl.contract.targets import TeacherTargets
from miniverl.errors import ContractError
from tests.contract.drawn import crossed

EXACT = {"exact": np.log(np.full((3, 4), 0.25))}
TOP = {"top_ids": [[1], [2], [3]], "top_logps": [[-0.5]] * 3, "tail": [-1.0] * 3}
SAMPLED = {"sampled": [-0.5, -1.0, -1.5]}
FORMS = pytest.mark.parametrize("form", [EXACT, TOP, SAMPLED], ids=["exact", "top-k", "sampled"])


def targets(**columns) -> TeacherTargets:
    return TeacherTargets(group_ids=("a", "b"), temperature=0.7, **columns)


@FORMS
def test_every_representation_counts_its_positions(form):
    assert targets(**form).positions == 3


@pytest.mark.parametrize(
    "columns",
    [{}, EXACT | SAMPLED, EXACT | TOP, TOP | SAMPLED, EXACT | TOP | SAMPLED, EXACT | {"tail": [-1.0] * 3}],
    ids=["none", "exact+sampled", "exact+top", "top+sampled", "all", "exact+tail"],
)
def test_none_or_several_representations_are_refused(columns):
    with pytest.raises(ContractError, match="not exactly one representation"):
        targets(**columns)


@pytest.mark.parametrize("missing", TOP)
def test_half_a_top_k_is_refused(missing):
    with pytest.raises(ContractError, match="not exactly one representation"):
        targets(**{name: column for name, column in TOP.items() if name != missing})


@FORMS
def test_the_columns_have_their_types_and_cannot_be_written_to_here_or_in_another_process(form):
    for owner in (targets(**form), crossed(targets(**form))):
        for name in form:
            column = getattr(owner, name)
            assert column.dtype == (np.int32 if name == "top_ids" else np.float32)
            with pytest.raises(ValueError, match="read-only"):
                column[...] = 0


@FORMS
def test_targets_are_the_same_in_another_process(form):
    sent, received = targets(**form), crossed(targets(**form))
    assert (received.group_ids, received.temperature) == (sent.group_ids, sent.temperature)
    for name in form:
        np.testing.assert_array_equal(getattr(received, name), getattr(sent, name))
