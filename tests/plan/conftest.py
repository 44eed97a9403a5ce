"""Model folders and data small enough to be written for every test: real files, no weights worth loading."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from miniverl.plan.compile import compile_plan
from miniverl.plan.plan import Plan
from miniverl.recipe.load import recipe_from
from miniverl.recipe.overrides import put

CHARACTERS = "0123456789+="
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}="


def write_model(folder: Path, *, tokens: str = CHARACTERS, weight: float = 0.0, **config: Any) -> Path:
    """A folder with every file a plan looks at. The tokens, then <end> and <pad>, are numbered from 0."""
    folder.mkdir(parents=True, exist_ok=True)
    ids = {token: index for index, token in enumerate([*tokens, "<end>", "<pad>"])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    tokenizer.add_special_tokens(["<end>", "<pad>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"vocab_size": len(ids) + 2, "max_position_embeddings": 64, "eos_token_id": ids["<end>"], **config}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    save_file({"weight": np.full(4, weight, dtype=np.float32)}, folder / "model.safetensors")
    return folder


def write_prompts(path: Path, questions: list[str]) -> Path:
    rows = [
        {"prompt": [{"role": "user", "content": text}], "data_source": "sums", "reward_model": {"ground_truth": "0"}}
        for text in questions
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Where a test lays its files, and what makes a plan of them."""

    folder: Path
    tree: Mapping[str, Any]
    """A recipe over the files."""

    def plan(self, changes: Mapping[str, Any] | None = None) -> Plan:
        """The plan with changes by dotted key."""
        tree = self.tree
        for key, value in (changes or {}).items():
            tree = put(tree, key, value)
        return compile_plan(recipe_from(tree, source="test"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    write_model(tmp_path / "student")
    write_model(tmp_path / "teacher", weight=1.0)
    write_prompts(tmp_path / "train.parquet", [f"{a}+{b}" for a in range(10) for b in range(10)])
    write_prompts(tmp_path / "held.parquet", ["1+1", "22+3"])
    tree = {
        "name": "desk",
        "objective": "gkd",
        "run": {"dir": str(tmp_path / "run")},
        "models": {"student": {"id": str(tmp_path / "student")}, "teacher": {"id": str(tmp_path / "teacher")}},
        "data": {
            "train_files": str(tmp_path / "train.parquet"),
            "val_files": str(tmp_path / "held.parquet"),
            "max_prompt_length": 8,
            "train_batch_size": 4,
        },
        "rollout": {"max_new_tokens": 8, "samples_per_prompt": 2},
        "trainer": {"total_training_steps": 5},
    }
    return Desk(folder=tmp_path, tree=tree)


@pytest.fixture
def new_model(tmp_path: Path) -> Callable[..., Path]:
    """Writes another model folder under a name."""
    return lambda name, **facts: write_model(tmp_path / name, **facts)
