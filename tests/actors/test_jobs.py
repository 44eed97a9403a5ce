"""This file holds jobs that nobody takes; those that run are shown by the command that submits them."""

import pytest

from actors.jobs import submit_run
from miniverl.errors import RoleError


def test_an_address_without_a_job_api_is_named():
    with pytest.raises(RoleError, match="no job API answers") as caught:
        submit_run(["quickstart"], address="http://127.0.0.1:1", shell={})
    assert "127.0.0.1:1" in caught.value.value
