import pytest
import torch

from miniverl.errors import PlacementError
from miniverl.models.device import device_for, is_out_of_memory, peak_bytes
from miniverl.plan.plan import DeviceShare


def test_a_share_without_gpu_computes_on_the_cpu():
    assert device_for(DeviceShare(gpu=0.0, cpu=1.0, threads=1)) == torch.device("cpu")


def test_a_share_of_a_gpu_that_is_not_there_is_refused():
    assert not torch.cuda.is_available()
    with pytest.raises(PlacementError, match="gpu: 0"):
        device_for(DeviceShare(gpu=0.5, cpu=1.0, threads=1))


def test_the_peak_never_falls_and_counts_what_was_touched():
    before = peak_bytes(torch.device("cpu"))
    held = torch.ones(2**24)
    after = peak_bytes(torch.device("cpu"))
    assert after >= before and after >= held.nbytes
    del held
    assert peak_bytes(torch.device("cpu")) >= after


def test_an_allocation_that_fails_is_known_from_other_errors():
    with pytest.raises(RuntimeError) as failed:
        torch.empty(2**50)
    assert is_out_of_memory(failed.value) and is_out_of_memory(torch.OutOfMemoryError())
    with pytest.raises(RuntimeError) as other:
        torch.zeros(2, 3) @ torch.zeros(2, 3)
    assert not is_out_of_memory(other.value)
