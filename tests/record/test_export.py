"""This file holds the behaviour of the exported result: whole under its name, or not there."""

import errno
import os

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import save_file

from miniverl.errors import RecordError
from miniverl.record.export import MARK, exported, publish
from tests.record.drawn import on_a_small_disk


def writing(text):
    return lambda folder: (folder / "adapter.bin").write_text(text)


def test_an_export_names_the_step_it_holds(tmp_path):
    publish(tmp_path / "final", writing("a"), step=3, tensor_digest="d")
    assert exported(tmp_path / "final") == (3, "d")
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"adapter.bin", MARK}


def test_a_death_while_exporting_leaves_no_export_under_the_name(tmp_path):
    def dying(folder):
        (folder / "adapter.bin").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "final", dying, step=3, tensor_digest="d")
    assert exported(tmp_path / "final") is None and not (tmp_path / "final").exists()
    publish(tmp_path / "final", writing("whole"), step=3, tensor_digest="d")
    assert (tmp_path / "final" / "adapter.bin").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["final"]


def test_a_later_step_replaces_the_export_and_the_same_one_is_left_alone(tmp_path):
    publish(tmp_path / "final", writing("three"), step=3, tensor_digest="d")
    publish(tmp_path / "final", writing("again"), step=3, tensor_digest="d")
    assert (tmp_path / "final" / "adapter.bin").read_text() == "three"
    publish(tmp_path / "final", writing("four"), step=4, tensor_digest="e")
    assert (tmp_path / "final" / "adapter.bin").read_text() == "four"
    assert exported(tmp_path / "final") == (4, "e")


def test_a_file_of_the_folders_name_is_refused_and_stays(tmp_path):
    (tmp_path / "final").write_text("mine")
    with pytest.raises(RecordError, match="final: a file stands where a folder must be"):
        publish(tmp_path / "final", writing("a"), step=3, tensor_digest="d")
    assert (tmp_path / "final").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "no space left"),
        (SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"), "no space left"),
        (SafetensorError("Error while serializing: something else"), "something else"),
        (PermissionError(errno.EACCES, "Permission denied"), "permission denied"),
    ],
)
def test_a_writer_that_fails_names_the_folder_and_leaves_the_older_export(tmp_path, error, told):
    def failing(folder):
        (folder / "adapter.bin").write_text("half")
        raise error

    publish(tmp_path / "final", writing("three"), step=3, tensor_digest="d")
    with pytest.raises(RecordError, match=f"{tmp_path / 'final'}: .*{told}"):
        publish(tmp_path / "final", failing, step=4, tensor_digest="e")
    assert exported(tmp_path / "final") == (3, "d") and [path.name for path in tmp_path.iterdir()] == ["final"]


@pytest.mark.parametrize("text", ["", "[]", "{}", "3"])
def test_a_mark_that_says_nothing_marks_no_export(tmp_path, text):
    publish(tmp_path / "final", writing("a"), step=3, tensor_digest="d")
    (tmp_path / "final" / MARK).write_text(text)
    assert exported(tmp_path / "final") is None


def test_a_disk_full_of_real_tensors_is_told_and_the_export_works_later(tmp_path):
    final = tmp_path / "disk" / "final"

    def export() -> None:
        tensors = {"w": np.ones(1 << 16)}
        publish(final, lambda folder: save_file(tensors, folder / "a.safetensors"), step=1, tensor_digest="d")

    def fill(make_room) -> None:
        with pytest.raises(RecordError, match="disk/final: "):
            export()
        assert not os.listdir(final.parent)
        make_room()
        export()

    assert on_a_small_disk(final.parent, 1 << 17, fill) == 0
