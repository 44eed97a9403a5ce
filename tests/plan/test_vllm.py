"""The environment of the vLLM backend is found and asked before anything starts, and refused by name."""

from __future__ import annotations

import json
import sys

import pytest

from miniverl.errors import ConfigError
from miniverl.plan import vllm
from miniverl.plan.vllm import bytes_per_token, interpreter, recorded, version_of

SHAPE = {"num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64, "head_dim": 32}


@pytest.fixture
def python(tmp_path):
    """An interpreter whose environment answers with these versions."""

    def make(*versions, text=None):
        path = tmp_path / "python"
        path.write_text(f"#!{sys.executable}\n{text or f'print({json.dumps(list(versions))!r})'}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_the_recipes_interpreter_comes_first_then_the_recorded_one_then_this_one(tmp_path, monkeypatch, python):
    named = python("0.32.0")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert interpreter(None) == sys.executable
    (tmp_path / vllm.RECORD).write_text(json.dumps({"python": named}))
    assert interpreter(None) == named
    assert interpreter(sys.executable) == sys.executable
    with pytest.raises(ConfigError, match=r"rollout\.vllm\.python.*is no file"):
        interpreter(str(tmp_path / "none"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"python": 3}', '{"python": "/none"}'])
def test_a_record_of_nothing_is_none(tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    assert recorded(tmp_path / "record.json") is None
    assert recorded(tmp_path / "none.json") is None


def test_a_release_that_was_tried_passes(python):
    assert version_of(python("0.32.0")) == "0.32.0"


def test_an_environment_without_vllm_and_one_with_another_release_are_refused_with_the_way_back(python):
    with pytest.raises(ConfigError, match=r"not installed.*miniverl vllm setup.*hf_cached"):
        version_of(python())
    with pytest.raises(ConfigError, match=r"has vLLM 0\.3\.1; tried are 0\.32"):
        version_of(python("0.3.1"))


def test_this_environment_has_no_vllm():
    with pytest.raises(ConfigError, match="not installed"):
        version_of(sys.executable)


@pytest.mark.parametrize("text", ["raise SystemExit(1)", "print('hello')"])
def test_what_is_no_interpreter_is_refused(python, text):
    with pytest.raises(ConfigError, match="does not run as a Python interpreter"):
        version_of(python(text=text))


def test_keys_and_values_are_counted_in_bytes():
    assert bytes_per_token(SHAPE, half=False) == 2 * 4 * 2 * 32 * 4
    assert bytes_per_token({**SHAPE, "head_dim": None, "num_key_value_heads": None}, half=True) == 2 * 4 * 4 * 16 * 2


def test_a_plan_names_the_server_it_would_start(desk, new_model, python):
    model = new_model("served", **SHAPE)
    changes = {"models.student.id": str(model), "rollout.backend": "vllm", "rollout.vllm.python": python("0.32.0")}
    plan = desk.plan(changes)
    assert plan.rollout.vllm.version == "0.32.0" and plan.rollout.vllm.enforce_eager
    assert plan.rollout.vllm.folder == f"{plan.run_dir}/vllm" and plan.rollout.vllm.kv_cache_bytes == 2**28
    assert plan.rollout.backend_version == plan.trainer.backend_version == "vllm 0.32.0"
    assert not plan.rollout.deterministic
    assert desk.plan({"models.student.id": str(model)}).rollout.vllm is None
    given = desk.plan({**changes, "rollout.vllm.kv_cache_gib": 2.0, "rollout.vllm.enforce_eager": False})
    assert given.rollout.vllm.kv_cache_bytes == 2**31 and not given.rollout.vllm.enforce_eager
