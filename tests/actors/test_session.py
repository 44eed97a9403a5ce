"""This file holds where Ray puts its sockets, and that a run leaves a Ray it did not start as it was."""

import os
import tempfile
from pathlib import Path

import pytest
import ray
from ray._private import worker as driver

from actors.environment import settled
from actors.session import RAYS_OWN_PART, SOCKET_PATH, namespace, ray_session, short_folder


def test_a_long_folder_for_temporary_files_is_replaced_by_a_short_one():
    with short_folder("/tmp") as found:
        assert found is None
    with short_folder("/tmp/" + "x" * 60) as found:
        assert Path(found).is_dir() and len(found) + RAYS_OWN_PART < SOCKET_PATH
        Path(found, "log").write_text("of Ray")
    assert not Path(found).exists()


def test_a_run_lives_in_a_namespace_of_its_own(plan):
    assert namespace(plan) == f"miniverl-{plan.run_id}"


def settings_of_ray() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("RAY_")}


@pytest.mark.slow
def test_a_ray_of_our_own_leaves_neither_files_nor_settings(plan, monkeypatch, tmp_path):
    assert not ray.is_initialized(), "comes before the tests that attach this process"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 60)))
    spoken, before = driver.print_to_stdstream, settings_of_ray()
    with settled({"RAY_AUTH_MODE": "token"}), ray_session(plan) as own:
        assert own and driver.print_to_stdstream is not spoken
        folder = Path(ray._private.worker.global_worker.node.get_temp_dir_path())
        assert folder.is_dir() and folder.parent == Path("/tmp")
    assert not ray.is_initialized() and not folder.exists()
    assert driver.print_to_stdstream is spoken and settings_of_ray() == before


@pytest.mark.slow
def test_a_ray_that_is_there_already_is_used_and_stays(attached, plan):
    with ray_session(plan) as own:
        assert not own
    assert ray.is_initialized()
