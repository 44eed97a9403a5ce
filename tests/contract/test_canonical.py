"""The semantics lock of canonical bytes. Changing an expected value here changes every recorded run."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from miniverl.contract.canonical import canonical_json, json_digest, little_endian, tensors_digest

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    y: float
    x: int


def test_the_json_is_locked():
    value = {"b": [1, 1.0, 1e-05, True, None], "a": {"é": '\n"', "z": ()}}
    assert canonical_json(value) == '{"a":{"z":[],"é":"\\n\\""},"b":[1,1.0,1e-05,true,null]}'.encode()
    assert json_digest(value) == "551f4512c75ee96b3f49f5c3c82a74b651e6f153f35ce318c9d5fda4a433505d"


def test_the_digest_of_tensors_is_locked():
    tensors = {"b": np.array([[1, -2]], dtype=np.int32), "a": np.array([0.5, -1.5], dtype=np.float32)}
    assert tensors_digest(tensors) == "3cd258ca120a46b60c17869458f06e0ec999da2c9afb5e923c3bfd1151b7f902"


def test_the_digest_of_tensors_is_what_its_docstring_says():
    array = np.array([0.5, -1.5], dtype=np.float32)
    expected = hashlib.sha256(b"a\x00f4\x00(2,)\x00" + bytes.fromhex("0000003f" + "0000c0bf"))
    assert tensors_digest({"a": array}) == expected.hexdigest()


@given(trees)
def test_the_json_says_what_the_value_said(tree):
    assert json.loads(canonical_json(tree)) == tree


@given(st.dictionaries(st.text(), st.integers(), min_size=2))
def test_the_order_of_keys_is_irrelevant(facts):
    assert canonical_json(dict(reversed(facts.items()))) == canonical_json(facts)


def test_a_dataclass_is_its_fields_and_any_mapping_a_dict():
    assert canonical_json(Point(x=1, y=0.5)) == canonical_json({"x": 1, "y": 0.5})
    assert canonical_json(MappingProxyType({"a": Point(x=1, y=0.5)})) == b'{"a":{"x":1,"y":0.5}}'


def test_a_number_of_numpy_is_the_number():
    assert canonical_json([np.int64(3), np.float64(0.5), np.bool_(True)]) == b"[3,0.5,true]"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan")])
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"loss": value})


@pytest.mark.parametrize("value", [np.zeros(2), {1, 2}, b"bytes", Point])
def test_what_has_no_one_form_is_refused(value):
    with pytest.raises(TypeError, match="has no canonical JSON"):
        canonical_json([value])


@given(arrays.arrays(st.sampled_from(["i4", "i8", "f4", "u1"]), arrays.array_shapes(max_dims=3, max_side=3)))
def test_neither_byte_order_nor_layout_of_memory_enters_a_digest(array):
    foreign = np.asfortranarray(array).astype(array.dtype.newbyteorder(">"))
    assert little_endian(foreign) == little_endian(array)
    assert tensors_digest({"t": foreign}) == tensors_digest({"t": array})


def test_the_order_in_which_tensors_come_is_irrelevant_and_pairs_do_as_well():
    a, b = np.zeros(2), np.ones(3)
    assert tensors_digest({"b": b, "a": a}) == tensors_digest([("a", a), ("b", b)])


@pytest.mark.parametrize(
    "other",
    [
        {"renamed": np.arange(4, dtype=np.float32)},
        {"t": np.arange(4, dtype=np.int32)},
        {"t": np.arange(4, dtype=np.float32).reshape(2, 2)},
        {"t": np.array([0, 1, 2, np.nextafter(np.float32(3), np.float32(4))], dtype=np.float32)},
        {"t": np.arange(4, dtype=np.float32), "more": np.zeros(0)},
        {},
    ],
    ids=["name", "type", "shape", "one bit", "an empty tensor more", "nothing"],
)
def test_a_digest_moves_with_name_type_shape_and_every_bit(other):
    assert tensors_digest(other) != tensors_digest({"t": np.arange(4, dtype=np.float32)})
