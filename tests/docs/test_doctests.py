"""This file holds the examples in docstrings, run."""

import doctest
import importlib

import pytest

from tests.architecture.sources import ROOT, sources

NAMES = [source.name for source in sources(ROOT) if ">>> " in source.text]


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_file_are_true(name):
    module = importlib.import_module(name.removesuffix(".py").replace("/", "."))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted and not result.failed


def test_a_false_example_is_seen(tmp_path, capsys):
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 1
    capsys.readouterr()
