"""The page says what the aggregate holds, and marks what was not measured."""

from __future__ import annotations

from miniverl.bench.evidence import check
from miniverl.bench.report import page


def test_the_page_has_every_cell_every_gate_and_every_raw_file(measured):
    found = check(measured)
    text = page(found)
    assert text == page(check(measured))
    assert text.count("| 16 | 8 |") == 4 and text.count("* |") == 4
    for gate in found["gates"]:
        assert f"| {gate['name']} |" in text
    for raw in found["header"]["raw"].values():
        assert raw["file"] in text and raw["sha256"] in text
    assert "| seconds_compile | – |" in text and "not selected" in text
