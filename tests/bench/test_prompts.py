"""Prompts of a benchmark are real, different and of exact length."""

from __future__ import annotations

from pathlib import Path

import pytest

from miniverl.bench.prompts import bench_prompts
from miniverl.data.packaged import resource
from miniverl.data.template import ChatTemplate

FOLDER = Path(resource("miniverl://tiny-student"))


@pytest.mark.parametrize("tokens", [16, 32, 128])
def test_prompts_have_their_length_and_differ(tokens):
    prompts = bench_prompts(FOLDER, count=6, tokens=tokens)
    assert [len(prompt.ids) for prompt in prompts] == [tokens] * 6
    assert len({prompt.digest for prompt in prompts}) == 6
    assert any("+" in ChatTemplate(FOLDER).decode(prompt.ids) for prompt in prompts)
