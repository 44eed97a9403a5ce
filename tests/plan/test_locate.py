"""What a recipe names, found on this machine; nothing is downloaded."""

from __future__ import annotations

import pytest
from huggingface_hub import constants

from miniverl.errors import ConfigError, DataError, ModelError
from miniverl.plan.identity import identify
from miniverl.plan.locate import locate_file, locate_model

FIELD = "models.student.id"


def test_a_folder_is_found_from_home_and_from_here(new_model, monkeypatch):
    folder = new_model("mine")
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.chdir(folder.parent)
    assert locate_model("~/mine", field=FIELD).path == locate_model("mine", field=FIELD).path == folder


def test_a_hub_model_is_found_in_the_local_cache_and_named_by_its_commit(new_model, monkeypatch, tmp_path):
    repository = tmp_path / "cache" / "models--org--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("c0ffee")
    new_model("cache/models--org--name/snapshots/c0ffee")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    model = identify("org/name", field=FIELD)
    assert model.revision == "c0ffee"
    assert model.path == repository / "snapshots" / "c0ffee"


def test_a_hub_model_that_is_not_there_is_not_fetched_but_told_how_to_be(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match=r"models\.student\.id = 'Qwen/Qwen3-0\.6B'.*hf download Qwen/Qwen3-0\.6B"):
        locate_model("Qwen/Qwen3-0.6B", field=FIELD)


@pytest.mark.parametrize("name", ["/no/such/folder", "./nothing", "~/nothing/at/all"])
def test_a_path_that_leads_nowhere_is_said_so(name):
    with pytest.raises(ModelError, match="no such folder"):
        locate_model(name, field=FIELD)


def test_a_file_is_no_model(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"")
    with pytest.raises(ModelError, match="is a file"):
        locate_model(str(tmp_path / "model.gguf"), field=FIELD)


def test_the_packaged_pair_and_its_data_are_found():
    assert (locate_model("miniverl://tiny-student", field=FIELD).path / "config.json").is_file()
    assert locate_file("miniverl://sums/train.parquet", field="data.train_files").is_file()


def test_a_misspelt_packaged_name_gets_the_nearest():
    with pytest.raises(ConfigError, match=r"models\.student\.id = .*did you mean miniverl://tiny-student"):
        locate_model("miniverl://tiny-studnet", field=FIELD)


@pytest.mark.parametrize("name", ["~nobody-of-this-name/x", "a\0b", "\udcff"])
def test_a_name_that_cannot_be_a_path_is_refused_under_its_key(name):
    with pytest.raises(ModelError, match=r"models\.student\.id = .*cannot be looked at"):
        locate_model(name, field=FIELD)


def test_a_data_file_of_an_unknown_home_is_refused():
    with pytest.raises(DataError, match=r"data\.train_files = .*cannot be looked at"):
        locate_file("~nobody-of-this-name/x", field="data.train_files")
