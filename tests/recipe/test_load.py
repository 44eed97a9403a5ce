"""A recipe file and its overrides, loaded."""

from __future__ import annotations

import pytest

from miniverl.errors import ConfigError
from miniverl.recipe.load import load_recipe, parse_block

MINIMAL = """
objective: gkd
models:
  student: {id: s}
  teacher: {id: t}
data: {train_files: a.parquet}
trainer: {total_training_steps: 1}
"""


@pytest.fixture
def written(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_a_recipe_without_a_name_is_called_like_its_file(written):
    assert load_recipe(written(MINIMAL)).name == "mine"
    assert load_recipe(written(MINIMAL + "name: yours")).name == "yours"


def test_numbers_in_scientific_notation_are_numbers(written):
    source = written(MINIMAL + "optim: {lr: 1e-4, eps: 1E-8}")
    assert (load_recipe(source).optim.lr, load_recipe(source).optim.eps) == (1e-4, 1e-8)
    assert load_recipe(source, ["optim.lr=3e-5"]).optim.lr == 3e-5


def test_the_last_override_wins(written):
    recipe = load_recipe(written(MINIMAL), ["rollout.temperature=0.5", "+rollout.temperature=0.7", "run.seed=3"])
    assert (recipe.rollout.temperature, recipe.run.seed) == (0.7, 3)


def test_values_of_overrides_are_yaml(written):
    recipe = load_recipe(
        written(MINIMAL),
        ["data.train_files=[a.parquet, b.parquet]", "models.student.lora={r: 8}", "distillation.topk=null"],
    )
    assert recipe.data.train_files == ("a.parquet", "b.parquet")
    assert (recipe.models.student.lora.r, recipe.models.student.lora.lora_alpha) == (8, 32)
    assert recipe.distillation.topk is None


def test_overrides_may_come_as_a_mapping(written):
    assert (
        load_recipe(written(MINIMAL), {"models.student.id": "Qwen/Qwen3-0.6B"}).models.student.id == "Qwen/Qwen3-0.6B"
    )


def test_a_removed_key_has_its_default_again(written):
    source = written(MINIMAL + "rollout: {temperature: 0.5}")
    assert load_recipe(source, ["~rollout.temperature"]).rollout.temperature == 1.0


def test_an_override_with_an_unknown_key_gets_the_nearest(written):
    with pytest.raises(ConfigError, match=r"rollout\.n = 4: no such key; write rollout\.samples_per_prompt"):
        load_recipe(written(MINIMAL), ["rollout.n=4"])


def test_an_override_that_is_not_yaml_is_named(written):
    with pytest.raises(ConfigError, match=r"data\.train_files=\[a.*is not YAML"):
        load_recipe(written(MINIMAL), ["data.train_files=[a"])


def test_a_key_written_twice_is_refused_with_both_lines(written):
    with pytest.raises(ConfigError, match="temperature: is written twice, in lines 2 and 3"):
        load_recipe(written("rollout:\n  temperature: 1.0\n  temperature: 0.5\n"))


def test_anchors_and_merges_still_work():
    tree = parse_block("base: &b {cpu: 0.4}\ntrainer: {<<: *b, threads: 2}", source="test")
    assert tree["trainer"] == {"cpu": 0.4, "threads": 2}


def test_a_key_that_yaml_reads_as_something_else_is_refused():
    with pytest.raises(ConfigError, match="line 1 is not text"):
        parse_block("on: 1", source="test")


@pytest.mark.parametrize("text", ["a: [1", "a: b: c", "\tx: 1"])
def test_text_that_is_not_yaml_is_refused_with_its_place(written, text):
    with pytest.raises(ConfigError, match="is not YAML: line 1"):
        load_recipe(written(text))


def test_python_objects_in_yaml_are_never_built():
    with pytest.raises(ConfigError, match="is not YAML"):
        parse_block("a: !!python/object/apply:os.getcwd []", source="test")


def test_an_empty_file_is_told_every_key_it_needs(written):
    with pytest.raises(ConfigError) as caught:
        load_recipe(written(""))
    for key in ("objective", "models.student.id", "models.teacher.id", "data.train_files"):
        assert f"{key}: is missing" in str(caught.value)


@pytest.mark.parametrize("text", ["[1, 2]", "just text"])
def test_a_file_without_keys_is_refused(written, text):
    with pytest.raises(ConfigError, match="is not a recipe"):
        load_recipe(written(text))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    (tmp_path / "mine.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_recipe(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize(
    "value",
    ["2020-13-45", "0x_", "!!int abc", "!!float x", "!!bool x", "!!timestamp x", "1" * 5000, "[" * 3000, "&a [*a]"],
)
def test_a_value_that_yaml_cannot_read_is_refused_with_its_override(written, value):
    with pytest.raises(ConfigError, match=r"optim\.lr="):
        load_recipe(written(MINIMAL), [f"optim.lr={value}"])


def test_a_block_that_contains_itself_is_refused():
    with pytest.raises(ConfigError, match="recursive"):
        parse_block("x: &x {y: *x}", source="test")


def test_an_entry_of_a_wrong_kind_does_not_make_the_list_empty(written):
    with pytest.raises(ConfigError, match=r"data\.train_files\[0\] = 1: is not text"):
        load_recipe(written(MINIMAL), ["data.train_files=[1]"])


def test_only_what_yaml_takes_for_a_number_is_told_to_lose_its_quotes(written):
    with pytest.raises(ConfigError, match=r"rollout\.temperature.*write a number"):
        load_recipe(written(MINIMAL), ["rollout.temperature='٣'"])


@pytest.mark.parametrize("key", ["r", "lora_alpha"])
def test_a_rank_beyond_any_matrix_is_refused(written, key):
    with pytest.raises(ConfigError, match=rf"models\.student\.lora\.{key} = \d+: is above"):
        load_recipe(written(MINIMAL), [f"models.student.lora.{key}=10000000"])
