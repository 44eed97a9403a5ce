"""This file holds ModelFolder: a model on this machine, checked for completeness and named by its bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from miniverl.contract.canonical import json_digest
from miniverl.data.prompts import file_sha256
from miniverl.data.template import ChatTemplate
from miniverl.errors import ModelError
from miniverl.plan.locate import locate_model
from miniverl.plan.weights import refuse_damaged
from miniverl.recipe.path import kind_of

INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelFolder:
    """What a plan knows about a model without loading it."""

    id: str
    """As the recipe names it."""
    path: Path
    """Absolute."""
    revision: str
    """Commit of a hub model; else SHA-256 over the names and hashes of config.json and the safetensors."""
    config: Mapping[str, Any]
    """config.json; of a model with several towers the part that describes the text model."""
    template: ChatTemplate
    tokenizer_digest: str
    """SHA-256 over vocabulary, merges and added tokens."""
    vocabulary: int
    """Ids the tokenizer can produce; the head may have more rows, or fewer."""
    end_ids: tuple[int, ...]
    """Sorted ids that end a response."""

    @property
    def head(self) -> int:
        """Rows of the LM head; often padded beyond what the tokenizer can produce."""
        return int(self.config["vocab_size"])

    @property
    def positions(self) -> int | None:
        """Tokens a sequence may have; None: the model states no limit."""
        return self.config.get("max_position_embeddings")


def identify(name: str, *, field: str) -> ModelFolder:
    """The model that the recipe key ``field`` names. Reads every byte of its weights unless the hub names their commit.

    Raises ModelError where a file is missing or the weights are pickles only.
    """
    located = locate_model(name, field=field)
    _refuse_incomplete(located.path, field=field)
    config = _config(located.path / "config.json", field=field)
    for path in sorted(located.path.glob("*.safetensors")):
        refuse_damaged(path, field=field)
    template = ChatTemplate(located.path)
    return ModelFolder(
        id=name,
        path=located.path,
        revision=located.commit or _revision(located.path),
        config=config,
        template=template,
        tokenizer_digest=template.tokenizer_digest,
        vocabulary=template.vocabulary,
        end_ids=template.end_ids,
    )


def _config(path: Path, *, field: str) -> dict[str, Any]:
    """The part of config.json that describes the text model, with the two numbers a plan reads checked."""
    config = _json(path, field=field)
    text = config.get("text_config")
    if "vocab_size" not in config and isinstance(text, dict):
        config = text
    if config.get("vocab_size") is None:
        raise ModelError(field, value=str(path), problem="states no vocab_size", fix="name a causal language model")
    for key in ("vocab_size", "max_position_embeddings"):
        found = config.get(key)
        if found is not None and (type(found) is not int or found < 1):
            problem = f"{key} is {found!r}, not a whole number above 0"
            raise ModelError(field, value=str(path), problem=problem, fix="correct the file, or fetch it again")
    return config


def _revision(folder: Path) -> str:
    named = [folder / "config.json", *sorted(folder.glob("*.safetensors"))]
    return json_digest(sorted((path.name, file_sha256(path)) for path in named))


def _refuse_incomplete(folder: Path, *, field: str) -> None:
    def is_file(name: str) -> bool:
        return kind_of(folder / name, field=field, refusal=ModelError) == "file"

    if is_file("adapter_config.json") and not is_file("config.json"):
        raise ModelError(
            field,
            value=str(folder),
            problem="is an adapter, not a model",
            fix="merge it into its base, or name the base",
        )
    missing = [name for name in ("config.json", "tokenizer.json") if not is_file(name)]
    if missing:
        raise ModelError(
            field,
            value=str(folder),
            problem=f"has no {' and no '.join(missing)}",
            fix="name a folder that transformers' save_pretrained wrote for model and fast tokenizer",
        )
    if not any(folder.glob("*.safetensors")):
        pickles = any(found for pattern in PICKLES for found in folder.glob(pattern))
        raise ModelError(
            field,
            value=str(folder),
            problem="holds its weights only as pickles, which can run code" if pickles else "has no *.safetensors",
            fix="save it again with save_pretrained, which writes safetensors",
        )
    if is_file(INDEX):
        shards = _shards(folder / INDEX, field=field)
        if absent := sorted(name for name in shards if not is_file(name)):
            raise ModelError(
                field, value=str(folder), problem=f"lacks {', '.join(absent)}, named by {INDEX}", fix="fetch it again"
            )


def _shards(index: Path, *, field: str) -> set[str]:
    """The files that an index names."""
    named = _json(index, field=field).get("weight_map")
    if not isinstance(named, dict) or not all(isinstance(name, str) for name in named.values()):
        raise ModelError(field, value=str(index), problem="has no weight_map of file names", fix="fetch the file again")
    return set(named.values())


def _json(path: Path, *, field: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(
            field, value=str(path), problem=f"cannot be read: {error}", fix="fetch the file again"
        ) from None
    if not isinstance(found, dict):
        raise ModelError(field, value=str(path), problem="holds no JSON object", fix="fetch the file again")
    return found
