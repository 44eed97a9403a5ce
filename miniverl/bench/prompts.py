"""This file holds the prompts of a benchmark: different real texts, cut to an exact number of tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from miniverl.contract.prompt import Prompt
from miniverl.data.prompts import read_prompts
from miniverl.data.template import ChatTemplate
from miniverl.errors import DataError
from miniverl.plan.locate import locate_file

SUMS = "miniverl://sums/train.parquet"
TEXTS = (
    "A lighthouse keeper writes down the weather four times a day. Explain in your own words how such "
    "notes, kept for a century on one rock, can tell us whether storms have become more frequent, and "
    "which mistakes one has to avoid. ",
    "My sourdough rises well on the first day and hardly at all on the third. The kitchen is at twenty "
    "degrees, the flour is rye, and I feed it every evening. List the causes you would look at first, in "
    "order, with a test for each. ",
    "Two trains leave towns 180 kilometres apart at the same time and drive towards each other, one at 70 "
    "and the other at 50 kilometres an hour. A swallow flies between them at 90 until they meet. How far "
    "does it fly? Show every step. ",
    "Write a short letter from a librarian to a reader who has kept a book about whales for eleven years. "
    "It should be kind, a little funny, and make the reader want to bring the book back without being "
    "afraid of the fee. ",
    "Describe how a bicycle stays upright while it rolls, to somebody who has heard that it is the "
    "spinning of the wheels alone. Say what experiments showed, and what a rider does without noticing. "
    "Use no formulas. ",
    "In a village of ninety houses every house has a cat or a dog or both. There are sixty cats and fifty "
    "dogs. In how many houses do both live if no house has two of a kind? Then say what changes when ten "
    "houses have neither. ",
)
"""Written for this purpose; a model with a small vocabulary that cannot write them gets sums instead."""


def bench_prompts(folder: Path, *, count: int, tokens: int) -> list[Prompt]:
    """``count`` prompts of exactly ``tokens`` ids, no two alike."""
    template = ChatTemplate(folder)
    rows = _texts(template, count, tokens) if template.unknown_id is None else _sums(template, count, tokens)
    prompts = [Prompt(row=row, ids=ids, data_source="bench", ground_truth=None) for row, ids in enumerate(rows)]
    if len({prompt.digest for prompt in prompts}) < count:
        raise DataError("prompts", value=tokens, problem="are too short to differ", fix="ask for longer ones")
    return prompts


def _texts(template: ChatTemplate, count: int, tokens: int) -> list[np.ndarray]:
    """Each begins at another text and goes on through the others."""
    rows = []
    for first in range(count):
        text = f"{first + 1}. " + "".join(TEXTS[(first + step) % len(TEXTS)] for step in range(len(TEXTS)))
        ids = template.encode([{"role": "user", "content": text * (1 + tokens // 200)}])
        rows.append(np.array(ids[:tokens], np.int32))
    return rows


def _sums(template: ChatTemplate, count: int, tokens: int) -> list[np.ndarray]:
    """Sums of the packaged task, one after the other."""
    sums = read_prompts(
        [locate_file(SUMS, field="prompts")], template=template, prompt_key="prompt", max_prompt_length=64,
        truncation="error", filter_overlong_prompts=False,
    )  # fmt: skip
    stream = np.concatenate([prompt.ids for prompt in sums.prompts[: count * tokens]])
    return [stream[row * tokens : (row + 1) * tokens] for row in range(count)]
