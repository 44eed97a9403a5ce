"""This file holds Philox4x64-10 in int64 tensor operations: numpy's counter-based random numbers, for all rows at once.

Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (2011).
"""

from __future__ import annotations

import torch
from torch import Tensor

_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
_WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
_ROUNDS = 10
_LOW = 0xFFFFFFFF


def uniforms(seeds: Tensor, count: int) -> Tensor:
    """float64 [rows, count]; entry [r, i] is ``Generator(Philox(key=seeds[r], counter=i)).random()``.

    ``seeds``: int64 [rows], each in [0, 2^63).
    """
    index = torch.arange(1, count + 1, device=seeds.device)  # numpy increments the counter before the first block
    shape = (len(seeds), count)
    words = [index.expand(shape), *(torch.zeros(shape, dtype=torch.int64, device=seeds.device) for _ in range(3))]
    key = (seeds[:, None], torch.zeros_like(seeds[:, None]))
    for number in range(_ROUNDS):
        words = _round(words, [word + _signed(number * weyl) for word, weyl in zip(key, _WEYL, strict=True)])
    return _shifted(words[0], 11).double() * 2.0**-53


def _round(words: list[Tensor], key: list[Tensor]) -> list[Tensor]:
    high_0, low_0 = _multiply(words[0], _MULTIPLIERS[0])
    high_2, low_2 = _multiply(words[2], _MULTIPLIERS[1])
    return [high_2 ^ words[1] ^ key[0], low_2, high_0 ^ words[3] ^ key[1], low_0]


def _multiply(word: Tensor, constant: int) -> tuple[Tensor, Tensor]:
    """High and low 64 bits of the unsigned product. Partial products wrap within int64; their bits are right."""
    high, low = _shifted(word, 32), word & _LOW
    constant_high, constant_low = constant >> 32, constant & _LOW
    middle = high * constant_low + _shifted(low * constant_low, 32)
    carry = (middle & _LOW) + low * constant_high
    return high * constant_high + _shifted(middle, 32) + _shifted(carry, 32), word * _signed(constant)


def _shifted(word: Tensor, bits: int) -> Tensor:
    """Right shift that fills with zeros."""
    return (word >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The int64 with the low 64 bits of ``value``."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
