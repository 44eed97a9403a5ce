"""The data a plan asks about."""

from __future__ import annotations

import hashlib

from miniverl.plan.identity import identify
from miniverl.plan.questions import data_plan
from miniverl.recipe.schema import Data


def test_files_are_pinned_by_hash_and_prompts_by_digest(desk):
    path = desk.folder / "held.parquet"
    student = identify(str(desk.folder / "student"), field="models.student.id")
    plan, prompts = data_plan([str(path)], Data(train_files=[str(path)]), student=student, field="data.train_files")
    assert plan.files[0].path == str(path)
    assert plan.files[0].sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (plan.prompts, plan.digest) == (2, prompts.digest)
    assert plan.tokenizer_path == str(desk.folder / "student")
    assert plan.template_digest == student.template.digest
    assert [prompt.ids.tolist() for prompt in prompts.prompts] == [[1, 10, 1, 11], [2, 2, 10, 3, 11]]
