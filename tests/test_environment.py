"""This file holds the check that tests really run on one thread with fixed float bits."""

import os
import subprocess
import sys


def test_torch_in_a_test_has_one_thread_and_the_portable_instruction_set():
    probe = "import torch; print(torch.get_num_threads(), torch.backends.cpu.get_cpu_capability())"
    found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert found == ["1", "AVX2"]


def test_a_hub_is_never_asked():
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    assert "RAY_ADDRESS" not in os.environ
