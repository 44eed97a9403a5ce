"""Evidence is checked byte for byte, and nothing can be changed unseen."""

from __future__ import annotations

import json
import shutil

import pytest

from miniverl.bench.evidence import check
from miniverl.errors import RecordError


@pytest.fixture
def copied(measured, tmp_path):
    for path in measured.parent.glob("out*"):
        shutil.copy(path, tmp_path)
    return tmp_path / "out.json"


def test_an_aggregate_is_made_again_from_its_raw_files(copied):
    found = check(copied)
    assert found["header"]["commit"] and len(found["header"]["package_sha256"]) == 64
    assert found["header"]["machine"]["cpus"] >= 1 and found["header"]["versions"]["torch"]
    assert set(found["header"]["raw"]) == {"hf_cached", "hf_reference"}


def test_a_raw_file_in_which_one_byte_changed_is_named(copied):
    raw = copied.with_name("out.hf_cached.raw.json")
    data = bytearray(raw.read_bytes())
    data[len(data) // 2] ^= 1
    raw.write_bytes(data)
    with pytest.raises(RecordError, match=r"out\.hf_cached\.raw\.json.*not the file"):
        check(copied)
    raw.unlink()
    with pytest.raises(RecordError, match="is missing"):
        check(copied)


@pytest.mark.parametrize("key", ["cells", "gates", "backends"])
def test_a_figure_that_was_improved_by_hand_is_seen(copied, key):
    found = json.loads(copied.read_text())
    if key == "cells":
        found["cells"][0]["ratios"]["hf_cached/hf_reference"] *= 2
    elif key == "gates":
        found["gates"][0]["passed"] = not found["gates"][0]["passed"]
    else:
        found["backends"]["hf_cached"]["seconds_start"] = 0.0
    copied.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    with pytest.raises(RecordError, match="is not what its raw files add up to"):
        check(copied)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"header": {}}'])
def test_what_is_no_aggregate_is_refused(tmp_path, text):
    (tmp_path / "out.json").write_text(text)
    with pytest.raises(RecordError, match="no aggregate"):
        check(tmp_path / "out.json")
