import pytest
import torch

from miniverl.errors import PlacementError
from miniverl.models.device import device_for
from miniverl.plan.plan import DeviceShare


def test_a_share_without_gpu_computes_on_the_cpu():
    assert device_for(DeviceShare(gpu=0.0, cpu=1.0, threads=1)) == torch.device("cpu")


def test_a_share_of_a_gpu_that_is_not_there_is_refused():
    assert not torch.cuda.is_available()
    with pytest.raises(PlacementError, match="gpu: 0"):
        device_for(DeviceShare(gpu=0.5, cpu=1.0, threads=1))
