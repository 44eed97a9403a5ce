"""This file holds the doors applied to the house, and a bad example for each of them."""

from pathlib import Path

import pytest

from tests.architecture import doors
from tests.architecture.sources import ROOT


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return root


def test_each_guarded_library_comes_in_by_its_own_door():
    assert doors.wrong_doors(ROOT) == []


def test_only_commands_and_actors_import_inside_functions():
    assert doors.late_imports(ROOT) == []


def test_only_commands_and_actors_read_the_environment():
    assert doors.environment_readers(ROOT) == []


def test_everything_is_caught_at_most_once_and_only_in_an_actor():
    found = doors.broad_excepts(ROOT)
    assert len(found) <= 1 and all(where.startswith("actors/") for where in found), found


def test_a_slow_twin_does_not_import_what_it_judges():
    assert doors.partial_oracles(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("miniverl/training/loop.py", "import ray"),
        ("miniverl/training/loop.py", "def f():\n    from ray.util import metrics"),
        ("miniverl/cli/run.py", "import importlib\nimportlib.import_module('ray')"),
        ("miniverl/metrics/declared.py", "import wandb"),
        ("miniverl/plan/show.py", "import yaml"),
        ("actors/rollout.py", "import httpx"),
        ("miniverl/recipe/load.py", "from omegaconf import OmegaConf"),
    ],
)
def test_a_library_by_the_wrong_door_is_seen(tmp_path, name, text):
    assert doors.wrong_doors(write(tmp_path, name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("actors/cluster.py", "import ray"),
        ("miniverl/metrics/sinks.py", "import wandb"),
        ("miniverl/recipe/load.py", "import yaml"),
        ("miniverl/data/order.py", "import rayleigh, yamlish"),
    ],
)
def test_the_right_door_is_open(tmp_path, name, text):
    assert doors.wrong_doors(write(tmp_path, name, text)) == []


def test_a_late_import_is_seen(tmp_path):
    assert doors.late_imports(write(tmp_path, "miniverl/models/load.py", "def f():\n    import json"))
    assert doors.late_imports(write(tmp_path / "other", "miniverl/cli/run.py", "def f():\n    import json")) == []


def test_a_reader_of_the_environment_is_seen(tmp_path):
    assert doors.environment_readers(write(tmp_path, "miniverl/models/load.py", "import os\nx = os.environ.get('A')"))
    assert doors.environment_readers(write(tmp_path / "other", "actors/cluster.py", "import os\nos.environ")) == []


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException as e", " (ValueError, Exception)"])
def test_a_broad_except_is_seen(tmp_path, caught):
    assert doors.broad_excepts(write(tmp_path, "miniverl/a.py", f"try:\n    pass\nexcept{caught}:\n    pass\n"))


def test_a_narrow_except_is_not_complained_about(tmp_path):
    assert doors.broad_excepts(write(tmp_path, "miniverl/a.py", "try:\n    pass\nexcept OSError:\n    pass\n")) == []


def test_an_oracle_that_borrows_from_its_subject_is_seen(tmp_path):
    assert doors.partial_oracles(write(tmp_path, "tests/oracle/gkd.py", "from miniverl.losses import gkd"))
    fine = write(tmp_path / "other", "tests/oracle/draws.py", "from miniverl.contract.group import Group")
    assert doors.partial_oracles(fine) == []
