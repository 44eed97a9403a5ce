"""This file holds the budgets applied to the house, and a bad example for each of them."""

from pathlib import Path

import pytest

from tests.architecture.budgets import over_budget
from tests.architecture.sources import ROOT


def test_every_file_and_function_fits_its_budget():
    assert over_budget(ROOT) == []


def complaints(tmp_path: Path, text: str, name: str = "miniverl/losses/gkd.py") -> list[str]:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return over_budget(tmp_path)


@pytest.mark.parametrize(("lines", "complains"), [(300, False), (301, True)])
def test_a_file_may_have_300_lines(tmp_path, lines, complains):
    assert bool(complaints(tmp_path, "x = 1\n" * lines)) is complains


@pytest.mark.parametrize(("lines", "complains"), [(120, False), (121, True)])
def test_the_page_may_have_120_lines(tmp_path, lines, complains):
    assert bool(complaints(tmp_path, "x = 1\n" * lines, "miniverl/training/loop.py")) is complains


@pytest.mark.parametrize(("lines", "complains"), [(50, False), (51, True)])
def test_a_function_may_have_50_lines(tmp_path, lines, complains):
    assert bool(complaints(tmp_path, "def f():\n" + "    x = 1\n" * (lines - 1))) is complains


@pytest.mark.parametrize(
    ("head", "complains"),
    [
        ("def f(a, b, c, *, d, e, g): ...", False),
        ("def f(a, b, c, *, d, e, g, h): ...", True),
        ("class A:\n  def f(self, a, b, c, d, e, g): ...", False),
        ("class A:\n  async def f(self, a, b, c, d, e, g, h): ...", True),
    ],
)
def test_a_function_may_have_six_arguments(tmp_path, head, complains):
    assert bool(complaints(tmp_path, head)) is complains


def test_options_of_a_command_are_not_counted(tmp_path):
    assert complaints(tmp_path, "def run(a, b, c, d, e, f, g, h): ...", "miniverl/cli/run.py") == []


def test_blocks_nest_three_deep_and_elif_is_no_nesting(tmp_path):
    flat = (
        "def f(x):\n if x == 1: pass\n elif x == 2: pass\n elif x == 3: pass\n elif x == 4: pass\n elif x == 5: pass\n"
    )
    deep = "def f(x):\n for a in x:\n  if a:\n   with a:\n    try: pass\n    finally: pass\n"
    assert complaints(tmp_path, flat) == []
    assert len(complaints(tmp_path, deep)) == 1
    assert (
        len(complaints(tmp_path, "def f(x):\n try: pass\n except E:\n  if x:\n   for a in x:\n    if a: pass\n")) == 1
    )
