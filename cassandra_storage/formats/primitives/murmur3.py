"""Tokens of the Murmur3Partitioner (org.apache.cassandra.utils.MurmurHash.hash3_x64_128, which is not the original:
it takes the bytes of the tail as signed).
"""

from __future__ import annotations

from struct import unpack_from

_MASK = (1 << 64) - 1
_MINIMUM = -(1 << 63)  # Murmur3Partitioner.MINIMUM
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def decorated_token(partition_key: bytes) -> int:
    """Murmur3Partitioner.getToken, by which SSTables are in order: as `token`, but the least one of an empty key, which
    only views have.
    """
    return token(partition_key) if partition_key else _MINIMUM


def token(partition_key: bytes) -> int:
    """The value of CQL's `token(…)` for the columns of a serialized partition key."""
    length = len(partition_key)
    h1 = h2 = 0
    for k1, k2 in (unpack_from("<QQ", partition_key, start) for start in range(0, length - 15, 16)):
        h1 = (_rotate(h1 ^ _mix1(k1), 27) + h2) * 5 + 0x52DCE729 & _MASK
        h2 = (_rotate(h2 ^ _mix2(k2), 31) + h1) * 5 + 0x38495AB5 & _MASK
    tail = unpack_from(f"<{length % 16}b", partition_key, length - length % 16)
    h1 ^= _mix1(_signed_word(tail[:8]))
    h2 ^= _mix2(_signed_word(tail[8:]))
    h1, h2 = h1 ^ length, h2 ^ length
    h1 = h1 + h2 & _MASK
    h2 = h1 + h2 & _MASK
    found = _end(h1) + _end(h2) & _MASK
    return (1 << 63) - 1 if found == 1 << 63 else found - (found >> 63 << 64)


def _signed_word(tail: tuple[int, ...]) -> int:
    word = 0
    for place, byte in enumerate(tail):
        word ^= byte << 8 * place & _MASK
    return word


def _mix1(word: int) -> int:
    return _rotate(word * _C1 & _MASK, 31) * _C2 & _MASK


def _mix2(word: int) -> int:
    return _rotate(word * _C2 & _MASK, 33) * _C1 & _MASK


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _MASK


def _end(word: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = (word ^ word >> 33) * factor & _MASK
    return word ^ word >> 33
