"""This file holds the reading of the data a plan asks about: files pinned by hash, prompts counted and digested."""

from __future__ import annotations

from collections.abc import Sequence

from miniverl.contract.prompt import Prompt
from miniverl.data.prompts import SHOWN, PromptSet, file_sha256, read_prompts
from miniverl.errors import DataError
from miniverl.plan.identity import ModelFolder
from miniverl.plan.locate import locate_file
from miniverl.plan.plan import DataFile, DataPlan
from miniverl.recipe.schema import Data


def data_plan(names: Sequence[str], data: Data, *, student: ModelFolder, field: str) -> tuple[DataPlan, PromptSet]:
    """The files that the recipe key ``field`` lists, and the prompts in them. Raises DataError with row numbers."""
    paths = [locate_file(name, field=field) for name in names]
    prompts = read_prompts(
        paths,
        template=student.template,
        prompt_key=data.prompt_key,
        max_prompt_length=data.max_prompt_length,
        truncation=data.truncation,
        filter_overlong_prompts=data.filter_overlong_prompts,
    )
    plan = DataPlan(
        files=tuple(DataFile(path=str(path), sha256=file_sha256(path)) for path in paths),
        prompt_key=data.prompt_key,
        max_prompt_length=data.max_prompt_length,
        truncation=data.truncation,
        filter_overlong_prompts=data.filter_overlong_prompts,
        tokenizer_path=str(student.path),
        template_digest=student.template.digest,
        prompts=len(prompts.prompts),
        digest=prompts.digest,
    )
    return plan, prompts


def refuse_without_answers(prompts: Sequence[Prompt], *, field: str) -> None:
    """Raises DataError, by row, for held-out prompts that have no answer to compare a response with."""
    without = [prompt.row for prompt in prompts if prompt.ground_truth is None]
    if without:
        raise DataError(
            field,
            value=without[:SHOWN],
            problem=f"these rows (of {len(without)}) have no reward_model.ground_truth and no extra_info.answer"
            if len(without) > SHOWN
            else "these rows have no reward_model.ground_truth and no extra_info.answer",
            fix="add the answers, ask fewer by trainer.val_prompts, or leave data.val_files out",
        )
