"""This file holds RaySession: the Ray a run lives in, attached to when the user names one, else started for the run."""

from __future__ import annotations

import logging
import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import ray

from miniverl.errors import RoleError
from miniverl.plan.plan import Plan

OBJECT_STORE = 256 * 2**20
"""Bytes. What travels is small: parcels, teacher targets and adapters, a few steps' worth at most."""

CONNECT = 15.0
"""Seconds until an address that does not answer is called dead."""

SOCKET_PATH = 107
"""Bytes a Unix socket's path may have."""

RAYS_OWN_PART = len("/ray/session_0000-00-00_00-00-00_000000_0000000/sockets/plasma_store")


def named_address(plan: Plan, shell: Mapping[str, str]) -> tuple[str, str] | None:
    """(who named it, address) of the Ray to attach to; None: start our own."""
    for source, address in (("ray.address", plan.ray_address), ("RAY_ADDRESS", shell.get("RAY_ADDRESS"))):
        if address and address != "local":
            return source, address
    return None


@contextmanager
def ray_session(plan: Plan) -> Iterator[bool]:
    """Ray, connected; yields whether it is our own. Our own one ends with the block, a foreign one is left as it is."""
    if ray.is_initialized():  # by a notebook: its Ray serves as well, and stays
        yield False
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    named = named_address(plan, os.environ)
    if named is not None:
        _attach(*named, namespace=namespace(plan))
    else:
        _start(plan)
    try:
        yield named is None
    finally:
        ray.shutdown()


def namespace(plan: Plan) -> str:
    return f"miniverl-{plan.run_id}"


def _start(plan: Plan) -> None:
    ray.init(
        address="local",
        namespace=namespace(plan),
        num_cpus=max(2, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2),
        object_store_memory=OBJECT_STORE,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=short_folder(tempfile.gettempdir()),
        # Workers in reserve would cost 100 MB each and are of no use: every role has an environment of its own.
        _system_config={"prestart_worker_first_driver": False, "enable_worker_prestart": False},
    )


def short_folder(default: str) -> str | None:
    """None where Ray's own choice of folder leaves room for its sockets, else a short one."""
    if len(os.fsencode(default)) + RAYS_OWN_PART <= SOCKET_PATH:
        return None
    return tempfile.mkdtemp(prefix="miniverl-", dir="/tmp")


def _attach(source: str, address: str, *, namespace: str) -> None:
    """Connects within CONNECT seconds. Raises RoleError naming the address and who named it."""
    refuse_unless_it_listens(source, address)
    failures: list[Exception] = []

    def connect() -> None:
        try:
            ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            failures.append(error)

    thread = threading.Thread(target=connect, daemon=True)  # Ray's own patience is minutes, and cannot be set
    thread.start()
    thread.join(CONNECT)
    if thread.is_alive():
        raise _dead(source, address, f"did not answer within {CONNECT:.0f} s")
    if failures:
        raise _dead(source, address, " ".join(str(failures[0]).split())[:300])


def refuse_unless_it_listens(source: str, address: str) -> None:
    """Raises RoleError when nothing listens at a host:port address; other forms are left to Ray."""
    host, colon, port = address.rpartition(":")
    if address.startswith("http"):
        raise _dead(source, address, "is the address of the job API, not of a Ray cluster")
    if not colon or not port.isdigit() or "/" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
    except OSError as error:
        raise _dead(source, address, f"nothing answers there ({error})") from None


def _dead(source: str, address: str, problem: str) -> RoleError:
    fix = "unset RAY_ADDRESS" if source == "RAY_ADDRESS" else "remove ray.address from the recipe"
    return RoleError(
        source, value=address, problem=problem, fix=f"start that Ray, name a living one, or {fix} to run without one"
    )
