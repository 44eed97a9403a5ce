"""A recipe and the files it names, resolved into one plan."""

from __future__ import annotations

import dataclasses
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from miniverl.errors import ConfigError, DataError, ModelError
from miniverl.plan.compile import compile_plan, run_id
from miniverl.recipe.load import recipe_from
from tests.plan.conftest import write_model, write_prompts


def test_every_part_finds_its_slice_filled(desk):
    plan = desk.plan()
    assert plan.trainer.model == plan.rollout.model
    assert plan.trainer.model.path == str(desk.folder / "student")
    assert plan.teacher.model.path == str(desk.folder / "teacher")
    assert plan.teacher.model.lora is None
    assert (plan.trainer.model.vocabulary, plan.teacher.model.vocabulary) == (14, 14)
    assert (plan.train_data.prompts, plan.evaluation_data.prompts, plan.evaluation_prompts) == (100, 2, 2)
    assert (plan.sampling.temperature, plan.sampling.stop_token_ids) == (1.0, (12,))
    assert plan.rollout.max_length == plan.teacher.max_length == 16
    assert plan.rollout.slots == plan.teacher.evaluation_slots == 8
    assert (plan.order.train_batch_size, plan.schedule.total_training_steps) == (4, 5)
    assert plan.trainer.experiment == plan.experiment
    assert plan.tracking.experiment_name == "desk"
    assert [step.cursor for step in plan.steps(after=0, cursor=0)] == [0, 4, 8, 12, 16]


def test_evaluation_is_greedy_under_the_same_limits(desk):
    plan = desk.plan({"rollout.top_k": 3, "rollout.temperature": 0.7})
    assert plan.evaluation_sampling == dataclasses.replace(plan.sampling, temperature=0.0, top_k=0, top_p=1.0)


def test_no_held_out_prompts_mean_no_evaluation(desk):
    plan = desk.plan({"data.val_files": []})
    assert (plan.evaluation_data, plan.evaluation_prompts) == (None, 0)


def test_no_more_held_out_prompts_are_asked_than_there_are(desk):
    assert desk.plan({"trainer.val_prompts": 1}).evaluation_prompts == 1
    assert desk.plan({"trainer.val_prompts": 99}).evaluation_prompts == 2


def test_a_plan_crosses_to_a_process_and_is_the_same_there(desk):
    plan = desk.plan()
    other = pickle.loads(pickle.dumps(plan))
    assert other == plan
    assert (other.experiment, other.execution) == (plan.experiment, plan.execution)


def test_the_same_recipe_gives_the_same_plan(desk):
    assert desk.plan() == desk.plan()


def test_the_run_directory_is_absolute_and_of_home_or_here(desk, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert desk.plan({"run.dir": None}).run_dir == str(tmp_path / "runs" / "desk")
    assert desk.plan({"run.dir": "~/x"}).run_dir == str(tmp_path / "home" / "x")
    recipe = recipe_from(desk.tree, source="test")
    assert compile_plan(recipe, run_dir="elsewhere").run_dir == str(tmp_path / "elsewhere")


def test_a_checkpoint_to_continue_from_is_an_absolute_path(desk, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert [desk.plan({"run.resume": word}).resume for word in ("auto", "never")] == ["auto", "never"]
    assert desk.plan({"run.resume": "run/checkpoints/step-3"}).resume == str(
        tmp_path / "run" / "checkpoints" / "step-3"
    )


def test_data_of_home_and_here_are_found(desk, monkeypatch):
    monkeypatch.chdir(desk.folder)
    monkeypatch.setenv("HOME", str(desk.folder))
    plan = desk.plan({"data.train_files": ["~/train.parquet", "held.parquet"]})
    assert [file.path for file in plan.train_data.files] == [
        str(desk.folder / "train.parquet"),
        str(desk.folder / "held.parquet"),
    ]
    assert plan.train_data.prompts == 102


def test_a_run_id_is_safe_and_belongs_to_one_directory():
    assert run_id("my run/ü", "/a").startswith("my-run-")
    assert run_id("x", "/a") != run_id("x", "/b")
    assert run_id("x", "/a") == run_id("x", "/a")
    assert run_id("...", "/a").startswith("run-")


def test_different_end_ids_are_united_and_said(desk):
    write_model(desk.folder / "teacher", eos_token_id=[12, 13])
    plan = desk.plan()
    assert plan.sampling.stop_token_ids == (12, 13)
    assert any("end ids differ" in note and "[12, 13]" in note for note in plan.notes)


def test_padded_heads_are_read_only_as_far_as_the_tokenizer_goes(desk):
    write_model(desk.folder / "teacher", vocab_size=128)
    plan = desk.plan()
    assert plan.teacher.model.vocabulary == plan.trainer.model.vocabulary == 14
    assert any("heads differ (student 16 rows, teacher 128)" in note for note in plan.notes)


def test_rows_that_were_dropped_or_cut_are_said(desk):
    write_prompts(desk.folder / "train.parquet", ["1+1", "1234567+1"])
    dropped = desk.plan({"data.filter_overlong_prompts": True})
    assert dropped.train_data.prompts == 1
    assert any("dropped" in note for note in dropped.notes)
    cut = desk.plan({"data.truncation": "left"})
    assert any("cut on the left" in note for note in cut.notes)


def test_a_batch_larger_than_the_data_is_said(desk):
    assert any("prompts repeat within a step" in note for note in desk.plan({"data.train_batch_size": 101}).notes)


def test_a_teacher_with_another_tokenizer_is_refused(desk):
    write_model(desk.folder / "teacher", tokens="0123456789-=")
    with pytest.raises(ModelError, match=r"models\.teacher\.id.*2 tokens differ") as caught:
        desk.plan()
    assert str(desk.folder / "student") in str(caught.value)
    assert str(desk.folder / "teacher") in str(caught.value)


def test_sequences_beyond_the_positions_of_a_model_are_refused(desk):
    write_model(desk.folder / "teacher", max_position_embeddings=15)
    with pytest.raises(ConfigError, match=r"16 tokens; models\.teacher\.id.*positions for 15"):
        desk.plan()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"data.train_files": "absent.parquet"}, DataError, "is missing"),
        ({"data.prompt_key": "promt"}, DataError, "did you mean prompt"),
        ({"data.max_prompt_length": 3}, DataError, "has 4 tokens"),
        ({"models.student.id": "no/such-model"}, ModelError, "models.student.id"),
    ],
)
def test_files_that_cannot_be_used_are_refused(desk, changes, error, words):
    with pytest.raises(error, match=words):
        desk.plan(changes)


def test_parquet_that_is_no_parquet_is_refused(desk):
    (desk.folder / "train.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(DataError, match="cannot be read"):
        desk.plan()


@pytest.mark.parametrize(("key", "name"), [("run.dir", "\udcff/x"), ("run.resume", "~nobody-of-this-name/x")])
def test_a_name_that_cannot_be_a_path_is_refused_under_its_key(desk, key, name):
    with pytest.raises(ConfigError, match=f"{key} = .*cannot be looked at"):
        desk.plan({key: name})


def test_held_out_rows_that_are_asked_need_an_answer(desk):
    rows = [{"prompt": "1+1", "reward_model": {"ground_truth": truth}} for truth in ("2", None, "2", None)]
    pq.write_table(pa.Table.from_pylist(rows), desk.folder / "held.parquet")
    with pytest.raises(DataError, match=r"data\.val_files = \[1, 3\].*no reward_model\.ground_truth"):
        desk.plan()
    assert desk.plan({"trainer.val_prompts": 1}).evaluation_prompts == 1


def test_more_cpus_than_this_machine_has_are_said_unless_a_cluster_is_named(desk):
    def said(changes):
        return [note for note in desk.plan(changes).notes if "CPUs" in note]

    assert said({}) == []
    assert "ask for 4001 CPUs" in said({"placement.teacher.cpu": 4000})[0]
    assert said({"placement.teacher.cpu": 4000, "ray.address": "auto"}) == []
