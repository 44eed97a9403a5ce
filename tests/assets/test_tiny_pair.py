"""The embedded default: it is in the package, small, what its cards say, and shares no sum between its files."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForCausalLM

from miniverl.data import sums
from miniverl.data.packaged import resource
from miniverl.data.prompts import read_prompts
from miniverl.data.template import ChatTemplate

TEACHER, STUDENT = "miniverl://tiny-teacher", "miniverl://tiny-student"


def test_the_whole_embedded_default_stays_under_eight_megabytes():
    files = [path for path in resource(TEACHER).parent.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 8_000_000


def test_the_files_share_no_sum_and_lie_in_their_buckets():
    questions = {}
    for split in sums.SPLITS:
        rows = pq.read_table(resource(f"miniverl://sums/{split}.parquet")).to_pylist()
        asked = [row["prompt"][0]["content"] for row in rows]
        assert len(set(asked)) == len(asked) == {"train": 8192}.get(split, 1024)
        assert {sums.bucket(*map(int, question.split("+"))) for question in asked} == {split}
        questions[split] = set(asked)
    assert not questions["train"] & questions["heldout"] and not questions["train"] & questions["validation"]


@pytest.mark.parametrize("split", sums.SPLITS)
def test_the_packaged_sums_are_what_the_task_draws(split):
    """Changing this remakes the package: scripts/make_tiny_pair.py would train other models on other sums."""
    packaged = pq.read_table(resource(f"miniverl://sums/{split}.parquet")).to_pylist()
    assert packaged == sums.rows(split, count=len(packaged), seed=0)


def test_teacher_and_student_share_tokenizer_template_and_end():
    teacher, student = ChatTemplate(resource(TEACHER)), ChatTemplate(resource(STUDENT))
    assert teacher.tokenizer_digest == student.tokenizer_digest
    assert teacher.digest == student.digest
    assert teacher.end_ids == student.end_ids and len(student.end_ids) == 1
    assert student.vocabulary <= 32


@pytest.mark.parametrize("name", [TEACHER, STUDENT])
def test_the_card_names_the_digest_of_every_file(name):
    folder = resource(name)
    table = dict(re.findall(r"^\| (\S+) \| `([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.MULTILINE))
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    files.pop("README.md")
    assert table == files


@torch.no_grad()
def exact(folder: Path, count: int) -> float:
    """Share of the first held-out sums that a plain greedy loop over transformers answers exactly."""
    template, model = ChatTemplate(folder), AutoModelForCausalLM.from_pretrained(folder).eval()
    assert model.dtype == torch.float32
    assert model.config.vocab_size == template.vocabulary
    assert (model.generation_config.eos_token_id,) == template.end_ids
    prompts = read_prompts(
        [resource("miniverl://sums/heldout.parquet")],
        template=template,
        prompt_key="prompt",
        max_prompt_length=9,
        truncation="error",
        filter_overlong_prompts=False,
    ).prompts[:count]
    right = 0
    for length in {len(prompt.ids) for prompt in prompts}:
        asked = [prompt for prompt in prompts if len(prompt.ids) == length]
        ids = torch.tensor([prompt.ids.tolist() for prompt in asked])
        for _ in range(5):
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], 1)
        for prompt, row in zip(asked, ids[:, length:].tolist(), strict=True):
            answer = row[: row.index(template.end_ids[0])] if template.end_ids[0] in row else row
            right += template.decode(answer, skip_special_tokens=False) == prompt.ground_truth
    return right / count


def test_the_teacher_knows_its_sums():
    assert exact(resource(TEACHER), 1024) >= 0.97


def test_the_student_has_begun_to_learn_them():
    assert 0.05 <= exact(resource(STUDENT), 1024) <= 0.35
