from pathlib import Path

import pytest

from miniverl.errors import ConfigError, DataError
from miniverl.recipe.path import absolute, expanded, kind_of


def test_home_is_expanded_and_links_are_followed_when_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a", field="run.dir") == tmp_path / "a"
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert absolute(tmp_path / "link", field="run.dir", links=True) == (tmp_path / "real").resolve()
    assert absolute(tmp_path / "link", field="run.dir") == tmp_path / "link"


@pytest.mark.parametrize("name", ["~nobody-has-this-name/x", "a\udcff"])
def test_names_that_are_no_paths_are_refused_with_their_key(name):
    with pytest.raises(ConfigError, match=r"run\.dir.*cannot be looked at"):
        absolute(name, field="run.dir")


def test_what_lies_there_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    kinds = [
        kind_of(path, field="f") for path in (tmp_path, tmp_path / "file", tmp_path / "no", tmp_path / "file" / "x")
    ]
    assert kinds == ["folder", "file", "nothing", "nothing"]


@pytest.mark.parametrize("path", ["x" * 5000, "nul\0"])
def test_a_place_that_cannot_be_looked_at_is_an_error_not_nothing(path):
    with pytest.raises(DataError, match=r"data\.train_files.*cannot be looked at"):
        kind_of(Path(path), field="data.train_files", refusal=DataError)


def test_a_loop_of_links_is_an_error_however_it_is_looked_at(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=r"run\.dir.*cannot be looked at"):
        kind_of(tmp_path / "loop", field="run.dir")
    with pytest.raises(ConfigError, match=r"run\.dir.*cannot be looked at"):
        absolute(tmp_path / "loop" / "x", field="run.dir", links=True)
