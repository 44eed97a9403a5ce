from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from miniverl.training.mismatch import mismatch
from tests.oracle.mismatch import mismatch as slow

LOGPS = st.lists(st.tuples(st.floats(-20, 0), st.floats(-20, 0)), min_size=1, max_size=200)


@given(LOGPS)
def test_every_figure_is_that_of_the_slow_twin(pairs):
    own, theirs = (np.array(column) for column in zip(*pairs, strict=True))
    found = asdict(mismatch(own, theirs))
    assert found == pytest.approx(slow(own.tolist(), theirs.tolist()), rel=1e-9, abs=1e-12)


def test_equal_log_probs_differ_in_nothing():
    same = np.array([-0.1, -3.0], np.float32)
    assert asdict(mismatch(same, same)) == {
        "tokens": 2, "max": 0.0, "mean": 0.0, "p99": 0.0, "k3": 0.0, "probability": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_what_is_not_finite_is_within_no_limit(bad):
    found = mismatch(np.array([-1.0, -1.0]), np.array([-1.0, bad]))
    assert not found.max <= 1e9 and not found.k3 <= 1e9


def test_k3_estimates_the_divergence_from_the_sampler_to_the_trainer():
    generator = np.random.default_rng(0)
    theirs, own = np.array([0.5, 0.3, 0.2]), np.array([0.45, 0.33, 0.22])
    tokens = generator.choice(3, 200_000, p=theirs)
    exact = float((theirs * np.log(theirs / own)).sum())
    assert mismatch(np.log(own)[tokens], np.log(theirs)[tokens]).k3 == pytest.approx(exact, rel=0.02)
