"""This file holds the command ``miniverl data``: sample files to try a recipe on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Prompts as Parquet files, in verl's schema.")


@app.callback()
def data() -> None:
    """Prompts as Parquet files, in verl's schema."""


@app.command()
def sample(
    out_dir: Annotated[Path, typer.Argument(metavar="OUT_DIR", help="Folder to write to; made if missing.")],
    rows: Annotated[int, typer.Option(help="Training rows; validation and held-out get an eighth each.")] = 8192,
    seed: Annotated[int, typer.Option(help="Another seed draws other sums of the same splits.")] = 0,
) -> None:
    """Write train, validation and held-out sums, the task of the packaged tiny models.

    Every row is a prompt such as 12+345 with its exact answer. A hash of the operands decides the split of a sum, so
    the three files never share one, whatever the seed. Point a recipe at them:

        miniverl run quickstart data.train_files=OUT_DIR/train.parquet data.val_files=OUT_DIR/heldout.parquet
    """
    from miniverl.data.sample import write_sample

    for path, count in write_sample(out_dir, rows=rows, seed=seed).items():
        typer.echo(f"{path}  {count} rows")
