"""This file holds which environment variables reach the processes of a run, and which never do."""

import os

from actors.environment import EQUAL_BITS, forwarded, named_address, ray_settings, role_variables, settled

SHELL = {
    "HF_HOME": "/models", "HF_TOKEN": "secret", "WANDB_MODE": "offline", "WANDB_API_KEY": "secret", "EDITOR": "vi",
    "https_proxy": "http://me:secret@proxy",
}  # fmt: skip


def test_settings_travel_and_secrets_stay():
    assert forwarded(SHELL) == {"HF_HOME": "/models", "WANDB_MODE": "offline"}


def test_paths_of_imports_are_absolute_where_they_arrive():
    found = forwarded({"PYTHONPATH": os.pathsep.join(["here", "/there", ""])})
    assert found == {"PYTHONPATH": os.pathsep.join([os.path.abspath("here"), "/there"])}


def test_a_role_without_a_gpu_sees_none(with_gpu):
    assert role_variables(with_gpu, "journal", {})["CUDA_VISIBLE_DEVICES"] == ""
    assert "CUDA_VISIBLE_DEVICES" not in role_variables(with_gpu, "trainer", {})


def test_threads_are_those_of_the_share(with_gpu):
    assert role_variables(with_gpu, "trainer", {})["OMP_NUM_THREADS"] == "2"
    assert role_variables(with_gpu, "rollout", {})["MKL_NUM_THREADS"] == "1"


def test_a_deterministic_run_asks_for_equal_bits_before_torch_loads(plan):
    assert plan.rollout.deterministic
    assert all(role_variables(plan, role, {}).items() >= EQUAL_BITS.items() for role in plan.placement)


def test_an_address_comes_from_the_recipe_before_the_shell(plan):
    from dataclasses import replace

    shell = {"RAY_ADDRESS": "there:6379"}
    assert named_address(plan, {}) is None
    assert named_address(plan, {"RAY_ADDRESS": "local"}) is None
    assert named_address(plan, shell) == ("RAY_ADDRESS", "there:6379")
    assert named_address(replace(plan, ray_address="here:1"), shell) == ("ray.address", "here:1")


def test_only_our_own_ray_is_confined_to_the_loopback_address():
    assert ray_settings(own=True).items() > ray_settings(own=False).items()


def test_settings_respect_the_shell_and_go_with_the_block(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    before = dict(os.environ)
    with settled({"RAY_AUTH_MODE": "token", "RAY_ONE": "1"}):
        assert (os.environ["RAY_AUTH_MODE"], os.environ["RAY_ONE"]) == ("disabled", "1")
        os.environ["RAY_OTHER"] = "set by Ray"
    assert dict(os.environ) == before
