"""This file holds what an address that is named, but dead, foreign or locked, leads to."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from actors import address
from actors.address import QUESTION, knock, token_mode
from miniverl.errors import RoleError


class Head(grpc.GenericRpcHandler):
    """A server that speaks as a Ray head does to a stranger."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self._code = code

    def service(self, details):
        assert details.method == QUESTION
        return grpc.unary_unary_rpc_method_handler(self._answer)

    def _answer(self, request, context):
        if self._code is not grpc.StatusCode.OK:
            context.abort(self._code, "no token")
        return b""


@pytest.fixture
def head():
    servers = []

    def listening(code: grpc.StatusCode) -> str:
        server = grpc.server(ThreadPoolExecutor(1), handlers=[Head(code)])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield listening
    for server in servers:
        server.stop(0)


@pytest.fixture
def token(tmp_path, monkeypatch):
    """A home folder with Ray's token."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").write_text("secret")


@pytest.mark.parametrize("listens", [False, True], ids=["nothing listens", "something else listens"])
def test_a_dead_address_is_named_within_the_deadline(monkeypatch, listens):
    monkeypatch.setattr(address, "CONNECT", 1.0)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        if listens:
            other.listen()
        named = f"127.0.0.1:{other.getsockname()[1]}"
        began = time.monotonic()
        with pytest.raises(RoleError) as caught:
            knock("RAY_ADDRESS", named, {})
    assert time.monotonic() - began < 5
    assert caught.value.field == "RAY_ADDRESS" and named in caught.value.value
    assert "unset RAY_ADDRESS" in caught.value.fix


@pytest.mark.parametrize("named", ["http://127.0.0.1:8265", "ray://127.0.0.1:10001"])
def test_an_address_of_another_kind_is_refused_at_once(named):
    with pytest.raises(RoleError, match="host:port") as caught:
        knock("ray.address", named, {})
    assert "remove ray.address" in caught.value.fix


def test_a_living_ray_needs_nothing(head, token):
    assert knock("RAY_ADDRESS", head(grpc.StatusCode.OK), {}) == {}


def test_a_locked_ray_of_this_machine_is_shown_the_token(head, token):
    assert knock("RAY_ADDRESS", head(grpc.StatusCode.UNAUTHENTICATED), {}) == {"RAY_AUTH_MODE": "token"}


def test_the_token_stays_here_and_a_choice_is_respected(token):
    assert token_mode("localhost", {}) == {"RAY_AUTH_MODE": "token"}
    assert token_mode("192.0.2.77", {}) == {}
    assert token_mode("localhost", {"RAY_AUTH_MODE": "disabled"}) == {}


def test_who_has_no_token_shows_none(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert token_mode("localhost", {}) == {}
    assert token_mode("localhost", {"RAY_AUTH_TOKEN": "secret"}) == {"RAY_AUTH_MODE": "token"}
