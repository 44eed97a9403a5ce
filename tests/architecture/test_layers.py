"""This file holds the layers: imports point down, as the contracts in pyproject.toml say, and breaking one is seen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT

LINT = [
    sys.executable,
    "-c",
    "from importlinter.cli import lint_imports_command as run; run()",
    "--no-cache",
    "--no-logo",
]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(LINT, cwd=root, capture_output=True, text=True)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A house with the real contracts and rooms that hold one empty file each."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in PACKAGES:
        for room in sorted((ROOT / package).rglob("__init__.py")):
            copy = tmp_path / room.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text("")
            (copy.parent / "thing.py").write_text("")
    for name in ("__main__", "api", "errors", "seeds"):
        (tmp_path / "miniverl" / f"{name}.py").write_text("")
    for name in ("reference", "base"):
        (tmp_path / "miniverl/engines" / f"{name}.py").write_text("")
    return tmp_path


def test_imports_point_down_in_the_house():
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout


def test_an_empty_house_breaks_no_contract(house):
    assert lint(house).returncode == 0


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("miniverl/contract/thing.py", "import miniverl.recipe.thing"),
        ("miniverl/training/thing.py", "import actors.thing"),
        ("miniverl/losses/thing.py", "def f():\n    from miniverl.models import thing"),
        ("miniverl/record/thing.py", "import miniverl.engines.base"),
        ("miniverl/cli/thing.py", "def f():\n    import ray"),
        ("miniverl/data/thing.py", "import torch"),
        ("miniverl/engines/reference.py", "import miniverl.engines.cached.thing"),
    ],
)
def test_an_import_that_points_up_or_through_a_wall_is_seen(house, file, line):
    (house / file).write_text(f"{line}\n")
    result = lint(house)
    assert result.returncode == 1 and "BROKEN" in result.stdout, result.stdout
