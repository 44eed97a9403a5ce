"""This file holds the keeper of the tests' shared Ray: a process that owns it and ends it when its input ends."""

import json
import logging
import sys

import ray


def keep() -> None:
    """Prints the addresses as one line of JSON, then waits for the end of its input; a dead parent ends it too."""
    context = ray.init(
        address="local",
        num_cpus=8,
        object_store_memory=256 * 2**20,
        include_dashboard=True,
        dashboard_port=int(sys.argv[1]),
        log_to_driver=False,
        logging_level=logging.ERROR,
        _system_config={"prestart_worker_first_driver": False, "enable_worker_prestart": False},
    )
    print(json.dumps({"gcs": context.address_info["gcs_address"], "jobs": f"http://{context.dashboard_url}"}), flush=True)
    sys.stdin.read()
    ray.shutdown()


if __name__ == "__main__":
    keep()
