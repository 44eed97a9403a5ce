"""This file holds the behaviour of checkpoints: whole, verified and named, or as if they had never been."""

import errno
import os
import shutil
import signal

import numpy as np
import pytest

from miniverl.contract.report import Checkpoint
from miniverl.errors import RecordError
from miniverl.record import checkpoint as checkpoints
from miniverl.record.checkpoint import read_checkpoint, sweep, verify_checkpoint, write_checkpoint
from miniverl.record.facts import Facts
from tests.record.drawn import again, die, fresh, in_a_child, run_steps

FACTS = Facts(rows=4, chain_head="c" * 64, cursor=4, lease=1)
TENSORS = {
    "adapter.safetensors": {"b": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.float32(2.5)},
    "optimizer.safetensors": {"m": np.arange(12.0).reshape(3, 4).T, "step": np.array([7], np.int64)},
}


def write(run_dir, *, step: int = 2, facts: Facts = FACTS, tensors=TENSORS) -> Checkpoint:
    return write_checkpoint(
        run_dir, step=step, facts=facts, tensors=tensors, metadata={"updates": step}, scheduled=True
    )


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_arrays_and_facts_come_back(tmp_path):
    made = write(tmp_path)
    tensors, manifest = read_checkpoint(tmp_path / made.folder)
    for name, arrays in TENSORS.items():
        assert tensors[name].keys() == arrays.keys()
        for key, array in arrays.items():
            assert np.array_equal(tensors[name][key], array) and tensors[name][key].dtype == array.dtype
    assert (manifest.step, manifest.cursor, manifest.rows, manifest.metadata) == (2, 4, 4, {"updates": 2})
    assert verify_checkpoint(tmp_path, made) == manifest


def test_equal_runs_write_equal_bytes(tmp_path):
    turned = {name: dict(reversed(arrays.items())) for name, arrays in reversed(TENSORS.items())}
    one = write(tmp_path / "one")
    two = write(tmp_path / "two", facts=Facts(rows=4, chain_head="c" * 64, cursor=4, lease=9), tensors=turned)
    assert one == two
    assert contents(tmp_path / "one" / one.folder) == contents(tmp_path / "two" / two.folder)


def test_no_draft_is_left(tmp_path):
    write(tmp_path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-2"]


@pytest.mark.parametrize("name", [*TENSORS, "manifest.json"])
def test_any_flipped_bit_cut_or_removal_is_an_error_that_names_the_file(tmp_path, name):
    made = write(tmp_path)
    path = tmp_path / made.folder / name
    data = path.read_bytes()
    damages = [bytes([*data[:n], data[n] ^ 1 << n % 8, *data[n + 1 :]]) for n in range(0, len(data), 5)]
    damages += [data[:n] for n in range(0, len(data), 11)] + [data + b"\0"]
    for damage in damages:
        path.write_bytes(damage)
        with pytest.raises(RecordError, match=name):
            verify_checkpoint(tmp_path, made)
        if name in TENSORS:
            with pytest.raises(RecordError, match=name):
                read_checkpoint(tmp_path / made.folder)
    path.unlink()
    with pytest.raises(RecordError, match=name):
        verify_checkpoint(tmp_path, made)
    path.write_bytes(data)
    verify_checkpoint(tmp_path, made)


def test_another_checkpoint_under_a_recorded_name_is_an_error(tmp_path):
    made = write(tmp_path)
    other = write(tmp_path, tensors={"adapter.safetensors": {"a": np.zeros(3)}})
    with pytest.raises(RecordError, match=r"manifest\.json"):
        verify_checkpoint(tmp_path, made)
    verify_checkpoint(tmp_path, other)


def test_a_checkpoint_outside_the_run_directory_is_refused(tmp_path):
    write(tmp_path / "a")
    stray = Checkpoint(step=2, folder="../a/checkpoints/step-2", manifest_digest="m", scheduled=True)
    (tmp_path / "b").mkdir()
    with pytest.raises(RecordError, match="leads out"):
        verify_checkpoint(tmp_path / "b", stray)


def test_a_folder_no_row_names_is_replaced_and_an_equal_one_stays(tmp_path):
    folder = tmp_path / "checkpoints" / "step-2"
    folder.mkdir(parents=True)
    (folder / "stray").write_text("from a life that ended")
    made = write(tmp_path)
    assert "stray" not in contents(folder)
    before = folder.stat().st_ino
    assert write(tmp_path) == made and folder.stat().st_ino == before
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-2"]


def test_a_full_disk_is_named_and_leaves_the_older_checkpoint_alone(tmp_path, monkeypatch):
    older = write(tmp_path, step=1)

    def no_room(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch, pytest.raises(RecordError, match="no space left for"):
        patch.setattr(os, "write", no_room)
        write(tmp_path)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-1"]
    verify_checkpoint(tmp_path, older)


def test_a_writer_killed_before_any_file_call_leaves_nothing_that_counts(tmp_path, monkeypatch):
    with fresh(tmp_path) as journal:
        run_steps(journal, 1)
        journal.commit(write(tmp_path, step=1, facts=journal.facts_at(1)))

    def save_and_die_at(call: int) -> None:
        journal = again(tmp_path)
        left = iter(range(call))

        def until_then(function):
            return lambda *given, **named: function(*given, **named) if next(left, None) is not None else die()

        for name in ("open", "write", "fsync", "rename", "mkdir", "unlink", "rmdir"):
            monkeypatch.setattr(os, name, until_then(getattr(os, name)))
        write(tmp_path, step=1, facts=journal.facts_at(1), tensors={"adapter.safetensors": {"a": np.ones(3)}})

    # The same step again with other tensors: the worst case, in which a named folder is replaced.
    ended, call, outcomes = -signal.SIGKILL, 0, set()
    while ended:
        ended = in_a_child(lambda at=call: save_and_die_at(at))
        assert ended in (0, -signal.SIGKILL)
        with again(tmp_path) as journal:
            (named,) = journal.checkpoints()
            sweep(tmp_path, [named])
        try:
            verify_checkpoint(tmp_path, named)
            outcomes.add("old")
        except RecordError:
            outcomes.add("not the old one, and it is said")
        assert all(path.name == "step-1" for path in (tmp_path / "checkpoints").iterdir())
        call += 1
    assert outcomes == {"old", "not the old one, and it is said"} and call > 10


def test_a_checkpoint_killed_between_its_name_and_its_row_is_swept(tmp_path):
    with fresh(tmp_path) as journal:
        run_steps(journal, 2)
        journal.commit(write(tmp_path, step=1, facts=journal.facts_at(1)))

    def save_without_a_row() -> None:
        journal = again(tmp_path)
        write(tmp_path, step=2, facts=journal.facts_at(2))
        (tmp_path / "checkpoints" / ".tmp-7-9").mkdir()
        die()

    assert in_a_child(save_without_a_row) == -signal.SIGKILL
    with again(tmp_path) as journal:
        assert sweep(tmp_path, journal.checkpoints()) == (".tmp-7-9", "step-2")
        verify_checkpoint(tmp_path, journal.checkpoints()[0])
        made = write(tmp_path, step=2, facts=journal.facts_at(2))
        journal.commit(made)
        assert journal.checkpoints()[0] == made
        assert sweep(tmp_path, journal.checkpoints()) == ()


def test_sweeping_a_run_without_checkpoints_does_nothing(tmp_path):
    assert sweep(tmp_path, ()) == ()


def test_a_tensor_file_must_have_a_plain_name(tmp_path):
    with pytest.raises(AssertionError):
        write(tmp_path, tensors={"../a": {}})
    assert not (tmp_path / "a").exists() and checkpoints.FOLDER == "checkpoints"


def test_what_somebody_put_beside_the_checkpoints_stays(tmp_path):
    with fresh(tmp_path) as journal:
        run_steps(journal, 2)
        write(tmp_path, step=2, facts=journal.facts_at(2))
    folder = tmp_path / "checkpoints"
    theirs = ("step-mine", "step-2-backup", "step-", "step-02", ".tmp-mine", "notes")
    ours = (".tmp-1-2", ".tmp-1-2-replaced", ".tmp-1-2.1-replaced.3")
    shutil.copytree(folder / "step-2", folder / "step-2-backup")
    for name in (*theirs, *ours):
        (folder / name).mkdir(exist_ok=True)
    assert sweep(tmp_path, ()) == (*sorted(ours), "step-2")
    assert sorted(path.name for path in folder.iterdir()) == sorted(theirs)
    (tmp_path / "journal.sqlite").unlink()
    fresh(tmp_path).release()  # a copy put aside says nothing of this journal
