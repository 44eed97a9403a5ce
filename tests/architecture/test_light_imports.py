"""This file holds what importing costs: the plan, the command line and the page answer without torch and Ray."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, sources

TORCH_FREE = ("contract", "recipe", "profiles", "plan", "data", "rewards")
HEAVY = ("torch", "ray", "transformers", "peft", "bitsandbytes", "wandb")
SLOW = (*HEAVY, "numpy", "pyarrow", "pydantic", "tokenizers")
"""Half a second together: enough to be felt before a help text."""
PROBE = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
found = {}
for name in sys.argv[3:]:
    importlib.import_module(name)
    heavy = sorted(set(sys.argv[2].split(",")) & set(sys.modules))
    if heavy:
        found[name] = heavy
        break
print(json.dumps(found))
"""


def heavy_imports(root: Path, modules: list[str], heavy: tuple[str, ...] = HEAVY) -> dict[str, list[str]]:
    """The first module that brings a heavy library in, directly or through others, with what it brought."""
    command = [sys.executable, "-c", PROBE, str(root), ",".join(heavy), *modules]
    result = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def modules_of(*rooms: str) -> list[str]:
    """All modules of the rooms of miniverl, in order of name."""
    below = tuple(f"miniverl/{room}" for room in rooms)
    names = [source.name for source in sources(ROOT) if source.name.startswith(below)]
    return [name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in names]


@pytest.mark.parametrize("room", TORCH_FREE)
def test_a_room_without_torch_brings_none_in(room):
    assert heavy_imports(ROOT, modules_of(f"{room}/")) == {}


def test_the_journal_brings_in_no_torch():
    assert heavy_imports(ROOT, modules_of("record/journal")) == {}


@pytest.mark.parametrize("module", ["miniverl.cli.main", "miniverl.training.loop"])
def test_the_command_line_and_the_page_bring_in_neither_torch_nor_ray(module):
    assert heavy_imports(ROOT, [module]) == {}


@pytest.mark.parametrize("module", ["miniverl", "miniverl.api", "miniverl.cli.main"])
def test_what_answers_a_person_loads_nothing_slow(module):
    assert heavy_imports(ROOT, [module], SLOW) == {}


def test_a_library_that_comes_through_another_file_is_seen(tmp_path):
    (tmp_path / "outer.py").write_text("import inner")
    (tmp_path / "inner.py").write_text("import sqlite3")
    (tmp_path / "plain.py").write_text("import math")
    assert heavy_imports(tmp_path, ["plain", "outer"], ("sqlite3",)) == {"outer": ["sqlite3"]}
