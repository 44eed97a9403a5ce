"""``miniverl data sample``: files to try a recipe on, and errors without a traceback."""

from __future__ import annotations

import pyarrow.parquet as pq
from typer.testing import CliRunner

from miniverl.cli.data import app
from miniverl.errors import DataError

runner = CliRunner()


def test_sample_writes_three_files_and_says_how_many_rows(tmp_path):
    result = runner.invoke(app, ["sample", str(tmp_path), "--rows", "16", "--seed", "3"])
    assert result.exit_code == 0
    lines = [
        f"{tmp_path / name}.parquet  {count} rows" for name, count in (("train", 16), ("validation", 2), ("heldout", 2))
    ]
    assert result.stdout.splitlines() == lines
    assert pq.read_metadata(tmp_path / "train.parquet").num_rows == 16


def test_sample_twice_refuses_to_overwrite(tmp_path):
    runner.invoke(app, ["sample", str(tmp_path), "--rows", "16"])
    again = runner.invoke(app, ["sample", str(tmp_path), "--rows", "16"])
    assert again.exit_code != 0
    assert isinstance(again.exception, DataError) and "is there already" in str(again.exception)


def test_help_says_how_to_use_the_files():
    result = runner.invoke(app, ["sample", "--help"])
    assert result.exit_code == 0 and "data.train_files=OUT_DIR/train.parquet" in result.stdout
