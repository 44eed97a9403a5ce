"""This file holds where Ray puts its sockets, and that a run leaves a Ray it did not start as it was."""

import os

import pytest
import ray

from actors.session import RAYS_OWN_PART, SOCKET_PATH, namespace, ray_session, short_folder


def test_a_long_folder_for_temporary_files_is_replaced_by_a_short_one():
    assert short_folder("/tmp") is None
    found = short_folder("/tmp/" + "x" * 60)
    os.rmdir(found)
    assert len(found) + RAYS_OWN_PART < SOCKET_PATH


def test_a_run_lives_in_a_namespace_of_its_own(plan):
    assert namespace(plan) == f"miniverl-{plan.run_id}"


@pytest.mark.slow
def test_a_ray_that_is_there_already_is_used_and_stays(attached, plan):
    with ray_session(plan) as own:
        assert not own
    assert ray.is_initialized()
