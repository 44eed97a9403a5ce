"""This file holds the tests of the random numbers: numpy's, computed for all rows at once."""

import numpy as np
import torch

from miniverl.engines.cached.philox import uniforms
from tests.oracle.sampling import uniform

EDGES = [0, 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 2**20, 2**63 - 1]


def test_every_row_draws_what_numpy_draws():
    random = np.random.default_rng(0).integers(0, 2**63, 60).tolist()
    seeds = EDGES + random
    drawn = uniforms(torch.tensor(seeds), 50)
    assert drawn.tolist() == [[uniform(seed, index) for index in range(50)] for seed in seeds]


def test_far_counters_are_right_too():
    drawn = uniforms(torch.tensor([12345, 2**63 - 1]), 5000)
    assert drawn[:, -1].tolist() == [uniform(12345, 4999), uniform(2**63 - 1, 4999)]


def test_a_row_does_not_depend_on_its_neighbours():
    together = uniforms(torch.tensor([5, 6, 7]), 9)
    assert torch.equal(together[1:2], uniforms(torch.tensor([6]), 9))


def test_uniforms_lie_in_the_unit_interval_and_fill_it():
    drawn = uniforms(torch.arange(64), 256)
    assert 0.0 <= drawn.min() < 1e-3 and 1 - 1e-3 < drawn.max() < 1.0
    assert abs(float(drawn.mean()) - 0.5) < 0.01
