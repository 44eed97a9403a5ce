"""This file holds what an error promises: it names field, value, problem and fix, and survives an actor boundary."""

import pickle

import pytest

import miniverl.errors as errors
from miniverl.errors import ConfigError, MiniverlError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, MiniverlError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_field_value_problem_and_fix(kind):
    text = str(kind("optim.lr", value="fast", problem="not a number", fix="write 1.0e-4"))
    assert all(part in text for part in ("optim.lr", "'fast'", "not a number", "write 1.0e-4"))


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_crosses_a_pickle_as_itself(kind):
    error = kind("data.train_files", value=["a"], problem="missing", fix="write the path of a Parquet file")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind and str(copy) == str(error) and copy.value == error.value


def test_a_value_that_cannot_be_pickled_does_not_keep_the_error_from_travelling():
    error = ConfigError("reward.path", value=lambda: None, problem="not a path", fix="write a path")
    assert "lambda" in str(pickle.loads(pickle.dumps(error)))


def test_a_value_of_none_is_shown_and_no_value_is_not():
    assert str(ConfigError("f", value=None, problem="p", fix="x")) == "f = None: p; x"
    assert str(ConfigError("f", problem="p", fix="x")) == "f: p; x"
