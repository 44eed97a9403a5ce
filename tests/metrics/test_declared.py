from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from miniverl.metrics import declared

ROOT = Path(__file__).parents[2]


def test_the_table_in_the_docs_is_current() -> None:
    """To renew it: python -m miniverl.metrics.declared > docs/metrics.md"""
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == declared.table()


def test_the_module_prints_the_table() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "miniverl.metrics.declared"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert printed.stdout == declared.table()


def test_no_name_is_declared_twice() -> None:
    assert len(declared.BY_NAME) == len(declared.ALL)


def test_every_constant_is_among_all() -> None:
    constants = [value for value in vars(declared).values() if isinstance(value, declared.Metric)]
    assert constants == list(declared.ALL)


def test_a_typo_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        declared.DISTILATION_LOSS  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("metric", declared.ALL, ids=str)
def test_a_metric_says_what_it_is(metric: declared.Metric) -> None:
    assert re.fullmatch(r"[a-z_]+(/[a-z_]+)+", metric.name)
    assert metric.unit and metric.help.endswith(".")
    assert metric.reduce in declared.REDUCTIONS


def test_every_way_to_reduce_is_explained() -> None:
    assert set(declared.REDUCTIONS) == set(get_args(declared.Reduce))


def test_clocks_are_side_facts() -> None:
    assert all(metric.side for metric in declared.ALL if metric.unit == "s")


def test_verls_panels_keep_working() -> None:
    """Names verl gives to the same numbers; renaming one empties somebody's W&B panel."""
    assert declared.BY_NAME.keys() >= {
        "actor/distillation/loss", "actor/distillation/student_mass", "actor/distillation/teacher_mass",
        "actor/pg_loss", "actor/grad_norm", "actor/lr", "actor/entropy", "response_length/mean",
        "response_length/max", "response_length/clip_ratio", "training/rollout_probs_diff_mean",
        "training/rollout_probs_diff_max", "timing_s/step", "timing_s/testing",
    }  # fmt: skip
