"""Damage to bytes: what a flipped bit, a torn write, a mixed-up file or a malicious length could have made of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeAlias

from cassandra_storage.formats.primitives.vint import write_unsigned_vint

_LENGTHS = [
    *(write_unsigned_vint(number) for number in (0x7F, 0x80, 0xFFFF, 2**31 - 1, 2**31, 2**32, 2**60, 2**64 - 1)),
    *(number.to_bytes(4, "big") for number in (0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 1)),
    *(number.to_bytes(2, "big") for number in (0, 2**15 - 1, 2**15, 2**16 - 1)),
    b"\x80" + bytes(7),  # Long.MIN_VALUE
]
_Step: TypeAlias = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def mutated(rng: random.Random, seed: bytes, others: Sequence[bytes]) -> bytes:
    """`seed` after one to four steps of damage; `others` are what pieces may come from."""
    data = bytearray(seed)
    steps = 1 if rng.random() < 0.5 else rng.randint(2, 4)
    for _ in range(steps):
        rng.choice(_STEPS)(rng, data, others)
    return bytes(data)


def _at(rng: random.Random, data: bytearray) -> int:
    return int(rng.random() * len(data))


def _flip(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_at(rng, data)] ^= 1 << rng.getrandbits(3)


def _overwrite(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_at(rng, data)] = rng.getrandbits(8)


def _step(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A length or a count that is off by a little."""
    if data:
        at = _at(rng, data)
        data[at] = (data[at] + rng.choice((-2, -1, 1, 2))) & 0xFF


def _truncate(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_at(rng, data) :]


def _cut(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(rng, data)
    del data[at : at + rng.choice((1, 1, 2, 4, 8, 64))]


def _insert(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(rng, data)
    data[at:at] = rng.randbytes(rng.choice((1, 1, 2, 4, 8, 64)))


def _length(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """An absurd length over whatever is there, or in between."""
    at, length = _at(rng, data), rng.choice(_LENGTHS)
    data[at : at + (1 if rng.random() < 0.5 else len(length))] = length


def _repeat(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _at(rng, data)
    piece = data[at : at + rng.choice((1, 2, 4, 16))]
    data[at:at] = piece * rng.choice((1, 1, 2, 50))


def _splice(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """The head of one and the tail of another, or a piece of another in between."""
    other = rng.choice(others)
    at, start = _at(rng, data), int(rng.random() * len(other))
    if rng.random() < 0.5:
        data[at:] = other[start:]
    else:
        data[at:at] = other[start : start + 16]


_STEPS: list[_Step] = [_flip, _flip, _overwrite, _step, _truncate, _cut, _insert, _length, _length, _repeat, _splice]
