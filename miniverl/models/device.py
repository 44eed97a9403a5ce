"""This file holds the choice of the device a role computes on."""

from __future__ import annotations

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
