"""This file holds the tests of the base that a server loads."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from miniverl.engines.vllm.weights import served_base
from miniverl.models.load import load_base
from miniverl.models.mirror import Mirror
from tests.training.conftest import tiny


def test_a_student_whose_folder_is_what_the_trainer_computes_with_is_served_from_it(tmp_path):
    plan = tiny("tiny-student", lora=True, quantization="none")
    assert served_base(plan, tmp_path / "base") == (Path(plan.path), "")


@pytest.mark.parametrize(("quantization", "vocabulary"), [("nf4", 20), ("none", 18), ("nf4", 18)])
def test_other_students_get_a_folder_with_exactly_those_weights(tmp_path, quantization, vocabulary):
    plan = dataclasses.replace(tiny("tiny-student", lora=True, quantization=quantization), vocabulary=vocabulary)
    mirror = Mirror(plan, device=torch.device("cpu"))
    folder, digest = served_base(plan, tmp_path / "base")
    assert digest == mirror.base_digest
    assert json.loads((folder / "config.json").read_text())["vocab_size"] == vocabulary
    assert (folder / "tokenizer.json").exists()
    served = load_base(dataclasses.replace(plan, path=str(folder), quantization="none"), device=torch.device("cpu"))
    ids = torch.arange(2, 14)[None]
    ours = mirror.module(ids).logits[..., :vocabulary]
    torch.testing.assert_close(served(ids).logits, ours, atol=1e-6, rtol=0)
