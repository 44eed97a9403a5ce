"""This file holds the rules about words applied to the house, and a bad example for each of them."""

from pathlib import Path

import pytest

from tests.architecture import words
from tests.architecture.sources import ROOT


def write(root: Path, name: str, text: str) -> Path:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return root


def test_no_file_or_class_has_a_name_that_could_hold_anything():
    assert words.vague_names(ROOT) == []


def test_one_word_per_idea():
    assert words.replaced_words(ROOT) == []


def test_no_history_in_the_code():
    assert words.history(ROOT) == []


def test_every_file_begins_by_saying_what_it_holds():
    assert words.first_lines(ROOT) == []


def test_nothing_committed_names_a_path_of_one_machine():
    assert words.machine_paths(ROOT) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("miniverl/losses/loss_utils.py", ""),
        ("miniverl/base_engine.py", ""),
        ("miniverl/plan/plan_v2.py", ""),
        ("actors/common.py", ""),
        ("miniverl/engines/pool.py", "class CacheManager: ..."),
        ("miniverl/engines/pool.py", "class BaseEngine: ..."),
        ("actors/trainer.py", "class StepHandler: ..."),
    ],
)
def test_a_name_that_could_hold_anything_is_seen(tmp_path, name, text):
    assert words.vague_names(write(tmp_path, name, text))


@pytest.mark.parametrize(
    "name", ["miniverl/models/dequantize.py", "miniverl/engines/base.py", "miniverl/data/database.py"]
)
def test_a_name_that_says_what_it_holds_is_not_complained_about(tmp_path, name):
    assert words.vague_names(write(tmp_path, name, "class BlockPool: ...")) == []


@pytest.mark.parametrize("text", ["# one episode", "class Datum: ...", "def add_experience(): ...", "Episodes = 1"])
def test_a_replaced_word_is_seen(tmp_path, text):
    assert words.replaced_words(write(tmp_path, "actors/a.py", text))


@pytest.mark.parametrize("text", ["# see issue 12", "# PR #7", "# since 2026-01-31"])
def test_history_is_seen(tmp_path, text):
    assert words.history(write(tmp_path, "miniverl/a.py", text))


@pytest.mark.parametrize("text", ["# an issue of taste", "x = 2026"])
def test_plain_talk_is_not_history(tmp_path, text):
    assert words.history(write(tmp_path, "miniverl/a.py", text)) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("miniverl/a.py", ""),
        ("miniverl/a.py", '"""A file about things."""'),
        ("miniverl/room/__init__.py", '"""TODO"""'),
        ("miniverl/room/__init__.py", '"""The room for tests."""\nimport os'),
    ],
)
def test_a_file_that_does_not_say_what_it_holds_is_seen(tmp_path, name, text):
    assert words.first_lines(write(tmp_path, name, text))


def test_a_path_of_one_machine_is_seen(tmp_path):
    assert words.machine_paths(write(tmp_path, "docs/a.md", "see /home/someone/notes"))
    assert words.machine_paths(write(tmp_path / "other", "docs/a.md", "see ~/notes and runs/" + "root/x")) == []
