"""Packaged models and data found by name, from wherever the package is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from miniverl.data.packaged import is_resource, resource, resources
from miniverl.errors import ConfigError

CARRIED = (
    "miniverl://sums/heldout.parquet",
    "miniverl://sums/train.parquet",
    "miniverl://sums/validation.parquet",
    "miniverl://tiny-student",
    "miniverl://tiny-teacher",
)


def test_the_package_carries_two_models_and_three_files_of_sums():
    assert resources() == CARRIED


@pytest.mark.parametrize("name", CARRIED)
def test_everything_that_is_named_is_there_whatever_the_working_directory(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = resource(name)
    assert is_resource(name)
    assert path.is_absolute() and (path.is_file() if name.endswith(".parquet") else path.is_dir())


@pytest.mark.parametrize("name", ["/models/qwen", "Qwen/Qwen3-0.6B", "tiny-teacher"])
def test_other_names_are_no_resources(name):
    assert not is_resource(name)


def test_a_misspelt_name_gets_the_nearest_and_the_key_that_holds_it():
    with pytest.raises(ConfigError, match=r"models\.teacher\.id = 'miniverl://tiny-teecher'") as refusal:
        resource("miniverl://tiny-teecher", field="models.teacher.id")
    assert refusal.value.fix == "did you mean miniverl://tiny-teacher?"


@pytest.mark.parametrize("name", ["miniverl://", "miniverl://llama"])
def test_a_name_that_is_near_to_nothing_is_answered_with_all_there_is(name):
    with pytest.raises(ConfigError) as refusal:
        resource(name)
    assert all(name in refusal.value.fix for name in CARRIED)


@pytest.mark.parametrize("name", ["miniverl://../errors.py", "miniverl://tiny-student/../tiny-teacher"])
def test_a_name_does_not_wander_through_folders(name):
    with pytest.raises(ConfigError, match="does not come with the package"):
        resource(name)


def test_finding_the_packaged_files_needs_no_torch():
    code = f"import sys, miniverl.data.packaged as p; p.resource({CARRIED[0]!r}); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
