"""This file holds the behaviour of file writing: whole or not at all, inside the run directory, refusals named."""

import errno
import os

import pytest

from miniverl.errors import RecordError
from miniverl.record.files import (
    inside,
    make_folder,
    named_errors,
    remove_folder,
    rename_durably,
    write_atomically,
    write_durably,
)


@pytest.fixture
def full_disk(monkeypatch):
    """The operating system takes half of what it is given, once, and has no room after that."""
    write, calls = os.write, []

    def no_room(descriptor, data):
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", no_room)


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "plan.json"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new" and [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_a_full_disk_names_the_amount_and_keeps_the_old_file(tmp_path, full_disk):
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    with pytest.raises(RecordError, match="no space left for 6,000 bytes"):
        write_atomically(path, b"x" * 6000)
    assert path.read_bytes() == b"old" and [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_bytes_taken_in_pieces_arrive_whole(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:7]))
    write_durably(tmp_path / "a", bytes(range(100)))
    assert (tmp_path / "a").read_bytes() == bytes(range(100))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EIO, errno.ENAMETOOLONG])
def test_every_refusal_names_the_file(tmp_path, code):
    with pytest.raises(RecordError, match="the-file"), named_errors(tmp_path / "the-file"):
        raise OSError(code, os.strerror(code))


def test_a_folder_below_a_file_is_refused(tmp_path):
    (tmp_path / "runs").write_text("")
    for place in (tmp_path / "runs", tmp_path / "runs" / "one"):
        with pytest.raises(RecordError, match="a file stands where a folder must be"):
            make_folder(place)


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc/passwd", ".", "", "link/out"])
def test_no_path_leads_out(tmp_path, path):
    root = tmp_path / "run"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(RecordError, match="leads out"):
        inside(root, path)


def test_a_path_that_stays_inside_is_resolved(tmp_path):
    assert inside(tmp_path, "checkpoints/../logs/a") == tmp_path.resolve() / "logs" / "a"


def test_a_link_is_removed_and_not_what_it_points_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("here")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    remove_folder(tmp_path / "link")
    remove_folder(tmp_path / "absent")
    assert not (tmp_path / "link").exists() and (tmp_path / "kept" / "file").exists()


def test_renaming_over_a_full_folder_is_refused(tmp_path):
    for name in ("draft", "target"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("")
    with pytest.raises(RecordError, match="target"):
        rename_durably(tmp_path / "draft", tmp_path / "target")
