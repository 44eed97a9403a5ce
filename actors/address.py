"""This file holds the knock at the address of a running Ray: does it answer, and does it want a token."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

from miniverl.errors import RoleError

CONNECT = 15.0
"""Seconds until an address that does not answer is called dead."""

QUESTION = "/ray.rpc.NodeInfoGcsService/GetClusterId"
"""What every Ray answers, or refuses for want of a token."""

TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def knock(source: str, address: str, shell: Mapping[str, str]) -> dict[str, str]:
    """What must be in the environment before ray loads, to attach to ``address``, which ``source`` named.

    Raises RoleError for an address where no Ray answers within CONNECT seconds. Asks without Ray's own client, whose
    patience is minutes. ``auto`` is left to Ray.
    """
    import grpc  # comes with ray[default]

    if address == "auto":
        return {}
    if "://" in address:
        raise dead(source, address, "is not the host:port of a Ray head")
    with grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        ask = channel.unary_unary(QUESTION, request_serializer=bytes, response_deserializer=bytes)
        try:
            ask(b"", timeout=CONNECT, wait_for_ready=True)
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAUTHENTICATED:
                return token_mode(address.rpartition(":")[0], shell)
            raise dead(source, address, f"no Ray answered within {CONNECT:.0f} s") from None
    return {}


def token_mode(host: str, shell: Mapping[str, str]) -> dict[str, str]:
    """The switch for Ray's token, where this user has one and the Ray is on this machine: no other one sees it."""
    if "RAY_AUTH_MODE" in shell or not _is_here(host):
        return {}
    has_token = any(shell.get(name) for name in TOKENS) or (Path.home() / ".ray" / "auth_token").is_file()
    return {"RAY_AUTH_MODE": "token"} if has_token else {}


def dead(source: str, address: str, problem: str) -> RoleError:
    fix = {"RAY_ADDRESS": ", or unset RAY_ADDRESS to run without one",
           "ray.address": ", or remove ray.address to run without one"}.get(source, "")  # fmt: skip
    return RoleError(source, value=address, problem=problem, fix=f"start that Ray or name a living one{fix}")


def _is_here(host: str) -> bool:
    """Whether the host is an address of this machine: only then can a socket be bound to it."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True
