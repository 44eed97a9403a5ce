"""Model folders: complete or refused, and named by their bytes."""

from __future__ import annotations

import json

import pytest

from miniverl.errors import ModelError
from miniverl.plan.identity import identify


def found(path):
    return identify(str(path), field="models.student.id")


def test_a_folder_is_named_by_its_bytes(new_model):
    first, copy = found(new_model("a")), found(new_model("b"))
    assert first.revision == copy.revision
    assert found(new_model("c", weight=1.0)).revision != first.revision
    assert found(new_model("d", hidden_size=1)).revision != first.revision


def test_other_files_in_the_folder_do_not_matter(new_model):
    folder = new_model("a")
    before = found(folder).revision
    (folder / "README.md").write_text("hello")
    assert found(folder).revision == before


def test_head_and_positions_come_from_the_config(new_model):
    model = found(new_model("a", vocab_size=99, max_position_embeddings=7))
    assert (model.head, model.positions) == (99, 7)


def test_the_text_part_of_a_config_is_read(new_model):
    folder = new_model("a")
    (folder / "config.json").write_text(json.dumps({"text_config": {"vocab_size": 5, "max_position_embeddings": 6}}))
    assert (found(folder).head, found(folder).positions) == (5, 6)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), "has no config.json"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"has no \*.safetensors"),
        (lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"), "only as pickles"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text("[]"), "holds no JSON object"),
        (lambda folder: (folder / "config.json").write_text("{}"), "states no vocab_size"),
        (lambda folder: (folder / "config.json").write_text("[" * 100_000), "cannot be read"),
        (lambda folder: (folder / "config.json").write_text('{"vocab_size": "9"}'), "vocab_size is '9'"),
        (lambda folder: (folder / "config.json").write_text('{"text_config": null}'), "states no vocab_size"),
        (
            lambda folder: (folder / "config.json").write_text('{"vocab_size": 9, "max_position_embeddings": "10"}'),
            "max_position_embeddings is '10'",
        ),
        (lambda folder: (folder / "model.safetensors").write_bytes(b""), r"models\.student\.id.*no whole safetensors"),
        (lambda folder: (folder / "model.safetensors").write_bytes(bytes(4096)), "no whole safetensors"),
        (lambda folder: (folder / "model.safetensors.index.json").write_text('{"weight_map": []}'), "no weight_map"),
        (lambda folder: (folder / "config.json").rename(folder / "adapter_config.json"), "is an adapter"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}})
            ),
            "lacks model-2.safetensors",
        ),
    ],
)
def test_an_incomplete_folder_is_refused_with_what_it_lacks(new_model, damage, words):
    folder = new_model("a")
    damage(folder)
    with pytest.raises(ModelError, match=words):
        found(folder)
