"""Overrides of a command line laid over a recipe's tree."""

from __future__ import annotations

import pytest

from miniverl.errors import ConfigError
from miniverl.recipe.overrides import put, remove, split


def test_a_word_is_split_at_its_first_equals_sign():
    assert split("run.dir=a=b") == ("run.dir", "a=b")


def test_adding_is_setting():
    assert split("+rollout.top_k=5") == split("++rollout.top_k=5") == split("rollout.top_k=5")


def test_a_tilde_removes():
    assert split("~rollout.top_k") == split("~rollout.top_k=5") == ("rollout.top_k", None)


@pytest.mark.parametrize("word", ["rollout.top_k", "=5", "+=5", "--epochs"])
def test_a_word_that_is_no_override_is_refused(word):
    with pytest.raises(ConfigError, match="not of the form key=value"):
        split(word)


def test_a_value_is_laid_into_a_new_tree():
    tree = {"a": {"b": 1}}
    assert put(tree, "a.c.d", 2) == {"a": {"b": 1, "c": {"d": 2}}}
    assert tree == {"a": {"b": 1}}


def test_a_block_keeps_the_keys_that_the_new_block_does_not_name():
    assert put({"a": {"b": 1, "c": {"d": 2}}}, "a", {"c": {"e": 3}}) == {"a": {"b": 1, "c": {"d": 2, "e": 3}}}


def test_null_beneath_a_key_makes_room_for_a_block():
    assert put({"lora": None}, "lora.r", 8) == {"lora": {"r": 8}}
    assert put({"lora": {"r": 8}}, "lora", None) == {"lora": None}


def test_a_key_beneath_a_plain_value_is_refused():
    with pytest.raises(ConfigError, match="is not a block"):
        put({"a": {"b": 1}}, "a.b.c", 2)


def test_removing_lets_the_default_hold_again():
    tree = {"a": {"b": 1, "c": 2}}
    assert remove(tree, "a.b") == {"a": {"c": 2}}
    assert tree == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize("key", ["x", "a.x", "a.b.c"])
def test_removing_what_is_not_there_is_refused(key):
    with pytest.raises(ConfigError, match="does not set this key"):
        remove({"a": {"b": 1}}, key)


def test_a_key_of_thousands_of_parts_is_refused():
    with pytest.raises(ConfigError, match="has 3000 parts"):
        put({}, ".".join(["a"] * 3000), 1)
