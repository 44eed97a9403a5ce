"""This file holds the behaviour of the chain: one digest for every group of a run, in order."""

import hashlib

from miniverl.record import chain


def test_a_link_is_the_sha256_of_both_hex_texts():
    assert chain.link("0" * 64, "a" * 64) == hashlib.sha256(b"0" * 64 + b"a" * 64).hexdigest()


def test_the_chain_of_two_known_digests_is_known():
    head = chain.link(chain.link(chain.START, "1" * 64), "2" * 64)
    assert head == "2a8e40f1eb8a9604be46e770dce27662999a5c75a9ea36828c26138a0a125c5e"


def test_order_matters():
    one, two = "1" * 64, "2" * 64
    assert chain.link(chain.link(chain.START, one), two) != chain.link(chain.link(chain.START, two), one)
