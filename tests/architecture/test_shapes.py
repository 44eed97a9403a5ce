"""This file holds the rules about shapes applied to the house, and a bad example for each of them."""

from pathlib import Path

import pytest

from tests.architecture import shapes
from tests.architecture.sources import ROOT


def write(root: Path, name: str, text: str = "") -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return root


def test_what_crosses_a_process_border_is_frozen_slotted_and_keyword_only():
    assert shapes.loose_types(ROOT) == []


def test_every_file_with_code_has_its_test():
    assert shapes.without_tests(ROOT) == []
    assert shapes.stale_allowances(ROOT) == []


@pytest.mark.parametrize(
    "decorator",
    ["@dataclass", "@dataclass(frozen=True)", "@dataclass(frozen=True, slots=True, kw_only=False)"],
)
def test_a_loose_type_is_seen(tmp_path, decorator):
    assert shapes.loose_types(write(tmp_path, "miniverl/contract/a.py", f"{decorator}\nclass A:\n    x: int"))


def test_a_tight_type_and_a_plain_class_are_not_complained_about(tmp_path):
    text = "@dataclass(frozen=True, slots=True, kw_only=True)\nclass A:\n    x: int\nclass B: ..."
    assert shapes.loose_types(write(tmp_path, "miniverl/contract/a.py", text)) == []


@pytest.mark.parametrize(
    ("name", "mirror"),
    [
        ("miniverl/seeds.py", "tests/test_seeds.py"),
        ("miniverl/data/order.py", "tests/data/test_order.py"),
        ("miniverl/engines/cached/slots.py", "tests/engines/cached/test_slots.py"),
        ("actors/trainer.py", "tests/actors/test_trainer.py"),
    ],
)
def test_a_file_without_its_test_is_seen(tmp_path, name, mirror):
    write(tmp_path, name, "def f(): ...")
    assert shapes.without_tests(tmp_path) == [f"{name} has no {mirror}"]
    assert shapes.without_tests(write(tmp_path, mirror)) == []


def test_a_file_of_types_alone_needs_no_test(tmp_path):
    assert shapes.without_tests(write(tmp_path, "miniverl/contract/a.py", "class A:\n    x: int")) == []
