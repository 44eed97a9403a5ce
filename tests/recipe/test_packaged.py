"""Recipes found by path or by the name they travel under."""

from __future__ import annotations

import pytest

from miniverl.errors import ConfigError
from miniverl.recipe.packaged import find_recipe, packaged_recipes


def test_the_quickstart_is_found_by_its_name_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_recipe("quickstart") == packaged_recipes()["quickstart"]
    assert find_recipe("quickstart").is_file()


def test_a_path_is_taken_as_it_is_and_home_is_understood(tmp_path, monkeypatch):
    (tmp_path / "mine.yaml").write_text("objective: gkd")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_recipe("~/mine.yaml") == tmp_path / "mine.yaml"


def test_a_folder_named_like_a_recipe_does_not_hide_it(tmp_path, monkeypatch):
    (tmp_path / "quickstart").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_recipe("quickstart").suffix == ".yaml"


@pytest.mark.parametrize("source", ["quickstar", "configs/quikstart.yaml"])
def test_a_misspelt_name_is_answered_with_the_nearest(source):
    with pytest.raises(ConfigError, match="did you mean quickstart"):
        find_recipe(source)


def test_a_folder_is_refused_as_one(tmp_path):
    with pytest.raises(ConfigError, match="is a folder"):
        find_recipe(str(tmp_path))


@pytest.mark.parametrize("source", ["~nobody-of-this-name/x.yaml", "x" * 5000, "a\0b", "\udcff.yaml"])
def test_a_name_that_cannot_be_a_path_is_refused(source):
    with pytest.raises(ConfigError, match=r"^recipe = .*cannot be looked at"):
        find_recipe(source)
