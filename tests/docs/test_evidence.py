"""Committed evidence is whole: made again from its raw files, its gates hold, and its page is generated from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from miniverl.bench.evidence import check
from miniverl.bench.gates import failed
from miniverl.bench.report import page

FOLDER = Path(__file__).parents[2] / "docs" / "evidence"
AGGREGATES = sorted(path for path in FOLDER.glob("*.json") if not path.name.endswith(".raw.json"))


@pytest.mark.parametrize("path", AGGREGATES, ids=lambda path: path.stem)
def test_evidence_is_what_its_raw_files_add_up_to_and_its_page_says_so(path):
    found = check(path)
    assert failed(found["gates"]) == []
    assert found["header"]["uncommitted_changes"] is False
    assert path.with_suffix(".md").read_text() == page(found)


def test_there_is_evidence():
    assert AGGREGATES
