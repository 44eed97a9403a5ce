"""This file holds the device a role computes on: which it is, and how much of its memory was taken."""

from __future__ import annotations

import resource
import sys

import torch

from miniverl.errors import PlacementError
from miniverl.plan.plan import DeviceShare


def device_for(share: DeviceShare) -> torch.device:
    """The GPU when the placement gives the role a share of one, else the CPU.

    A share bounds the process's GPU memory too: Ray's fractions are bookkeeping only.
    """
    if share.gpu == 0.0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise PlacementError(
            "placement.gpu",
            value=share.gpu,
            problem="this process sees no CUDA device",
            fix="set gpu: 0 to use the CPU",
        )
    torch.cuda.set_per_process_memory_fraction(min(share.gpu, 1.0))
    return torch.device("cuda")


def peak_bytes(device: torch.device) -> int:
    """The most memory this process has held at once: of the GPU, or of the machine where it computes on the CPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA's error has a type; the CPU allocator's is a RuntimeError that says so."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
