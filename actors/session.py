"""This file holds ray_session: the Ray a run lives in, attached to where the user names one, else started for it."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import ray
from ray._private import worker as driver

from actors.address import dead
from actors.environment import named_address
from miniverl.plan.placement import local_cpus
from miniverl.plan.plan import Plan

OBJECT_STORE = 256 * 2**20
"""Bytes. What travels is small: parcels, teacher targets and adapters, a few steps' worth at most."""

SOCKET_PATH = 107
"""Bytes a Unix socket's path may have."""

RAYS_OWN_PART = len("/ray/session_0000-00-00_00-00-00_000000_0000000/sockets/plasma_store")


@contextmanager
def ray_session(plan: Plan) -> Iterator[bool]:
    """Ray, connected; yields whether it is our own. Our own one ends with the block, a foreign one is left as it is."""
    if ray.is_initialized():  # by a notebook: its Ray serves as well, and stays
        yield False
        return
    named = named_address(plan, os.environ)
    with _quiet(), short_folder(tempfile.gettempdir()) as folder:
        if named is not None:
            _attach(*named, namespace=namespace(plan))
        else:
            _start(plan, folder)
        try:
            yield named is None
        finally:
            ray.shutdown()


@contextmanager
def _quiet() -> Iterator[None]:
    """Ray prints what it knows of a dead worker into stdout, where our figures go, and has no switch for it. The
    driver says it in a line of its own; Ray's logs keep the rest."""
    logger, spoken = logging.getLogger("ray"), driver.print_to_stdstream
    level = logger.level
    logger.setLevel(logging.ERROR)
    driver.print_to_stdstream = lambda *args, **options: None
    try:
        yield
    finally:
        driver.print_to_stdstream = spoken
        logger.setLevel(level)


def namespace(plan: Plan) -> str:
    return f"miniverl-{plan.run_id}"


def _start(plan: Plan, folder: str | None) -> None:
    ray.init(
        address="local",
        namespace=namespace(plan),
        num_cpus=local_cpus(),
        object_store_memory=OBJECT_STORE,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=folder,
        # Workers in reserve would cost 100 MB each and are of no use: every role has an environment of its own.
        _system_config={"prestart_worker_first_driver": False, "enable_worker_prestart": False},
    )


@contextmanager
def short_folder(default: str) -> Iterator[str | None]:
    """None where Ray's own choice of folder leaves room for its sockets, else a short one that goes with the block."""
    if len(os.fsencode(default)) + RAYS_OWN_PART <= SOCKET_PATH:
        yield None
        return
    folder = tempfile.mkdtemp(prefix="miniverl-", dir="/tmp")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # Ray's logs lie there, and a dying process may still write one


def _attach(source: str, address: str, *, namespace: str) -> None:
    """Raises RoleError naming the address and who named it."""
    try:
        ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise dead(source, address, " ".join(str(error).split())[:300]) from None
