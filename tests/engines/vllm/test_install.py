"""This file holds the tests of the installation, without installing: what is refused, kept and recorded."""

import sys
from pathlib import Path

import pytest

from miniverl.engines.vllm.install import CUDA_BUILDS, _name, set_up
from miniverl.errors import ConfigError
from miniverl.plan.vllm import RECORD, interpreter, recorded


def test_a_folder_that_is_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(ConfigError, match="is no virtual environment"):
        set_up(tmp_path / "mine", cuda=False, say=print)


def test_requirements_are_known_by_their_names():
    assert [_name(line) for line in ("torch==2.13.0+cpu; a", "torchaudio", "fastapi[standard]<1", "numba==0.6")] == [
        "torch", "torchaudio", "fastapi", "numba",
    ]  # fmt: skip
    assert _name("torchvision; platform_machine != 'x'") in CUDA_BUILDS


@pytest.mark.slow
def test_an_environment_that_works_is_only_recorded(tmp_path, monkeypatch):
    installed = interpreter(None)
    folder = Path(installed).parent.parent
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    said = []
    assert set_up(folder, cuda=False, say=said.append) == installed
    assert recorded(tmp_path / RECORD) == installed
    assert len(said) == 1 and "0.32" in said[0]
