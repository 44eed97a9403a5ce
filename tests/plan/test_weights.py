import numpy as np
import pytest
from safetensors.numpy import save_file

from miniverl.errors import ModelError
from miniverl.plan.weights import refuse_damaged


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"a": np.ones((3, 4), np.float32), "b": np.zeros(0, np.float32)}, path, metadata={"format": "pt"})
    return path


def test_whole_weights_pass(weights):
    refuse_damaged(weights, field="models.student.id")


def headed(text):
    return len(text).to_bytes(8, "little") + text


DAMAGE = {
    "cut off": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "empty": lambda data: b"",
    "shorter than its own length": lambda data: data[:5],
    "zero-filled": lambda data: bytes(len(data)),
    "without a header": lambda data: b"not a tensor file at all, but long enough to be one",
    "with a header that is no JSON": lambda data: data[:8] + b"x" + data[9:],
    "with a header that is no text": lambda data: headed(b"\xff"),
    "with a header nested without end": lambda data: headed(b"[" * 100_000),
    "with a list for a header": lambda data: headed(b"[]"),
    "with a tensor that lies nowhere": lambda data: headed(b'{"a": {}}'),
    "with a tensor that ends at a word": lambda data: headed(b'{"a": {"data_offsets": [0, "x"]}}'),
    "with a tensor that is a number": lambda data: headed(b'{"a": 1}'),
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
def test_damaged_weights_are_named_with_the_key_they_belong_to(weights, change):
    weights.write_bytes(change(weights.read_bytes()))
    with pytest.raises(ModelError, match=r"models\.student\.id.*model\.safetensors.*fetch the file again"):
        refuse_damaged(weights, field="models.student.id")
