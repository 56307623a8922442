"""The layout of the state of a partition: its keys and values.

- `r <group> <input> <ident>`: a row, with its sequence and its columns.
- `n <group>`: the number of rows of each input.
- `m f <input> <partition>`: the frontier, which is the next offset of a source partition.
- `m h <input> <partition>`: there while only the first of two messages of a change is joined.
- `m c`: how far a message is joined whose changes do not fit into one transaction.
- `m l <input> <partition>`: there once all messages that a source partition had at the start are joined; the number of
  the partitions of its topic.
- `m d`: the number of the definition that the rows are of. A state of an older release has none.
- `m r`: the number of rows of each input in the whole state.
- `m b`: how far the join has begun: rows are loaded, joined rows are sent up to a place, or it has. A state of an older
  release has none: it has begun.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.encoding import encode_bytes, encode_long
from cdc_common.messages.avro.skipping import read_long
from joinery.joining.records import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONTINUATION = b"mc"
PHASE = b"mb"
LOADING, SENDING, BEGUN = b"\x00", b"\x01", b"\x02"  # the first byte of a phase
DEFINITION, TOTALS = b"md", b"mr"
MARKED, AFTER_MARKED = b"ml", b"mm"
COUNTS, AFTER_COUNTS = b"n", b"o"
ROWS, AFTER_ROWS = b"r", b"s"
_FRONTIER = b"mf"
_HALF = b"mh"
_MOST_PLACES = 10_000  # partitions of inputs, whose keys a process keeps


class StoredRow(NamedTuple):
    """A row as the state has it."""

    # Identifies the row within its group and input.
    ident: bytes
    # Its sequence.
    sequence: int
    # Its columns in the joined row.
    columns: bytes


class Continuation(NamedTuple):
    """How far the changes of a message are made."""

    # The offset of the message.
    offset: int
    # The idents of the last combination of the other inputs' rows; None for an input without a row.
    last: tuple[bytes | None, ...]


def rows_prefix(group: Group, number: int) -> bytes:
    """The start of the keys of all rows of an input in a group."""
    return ROWS + encode_bytes(group.key) + encode_bytes(group.alone) + bytes((number,))


def after_prefix(prefix: bytes) -> bytes:
    """The first key after those with this prefix, which ends with an input's number."""
    return prefix[:-1] + bytes((prefix[-1] + 1,))


def counts_key(group: Group) -> bytes:
    return COUNTS + encode_bytes(group.key) + encode_bytes(group.alone)


@lru_cache(_MOST_PLACES)
def frontier_key(number: int, partition: int) -> bytes:
    return _FRONTIER + bytes((number,)) + partition.to_bytes(4, "big")


@lru_cache(_MOST_PLACES)
def half_key(number: int, partition: int) -> bytes:
    return _HALF + bytes((number,)) + partition.to_bytes(4, "big")


def read_frontier(pairs: Iterator[tuple[bytes, bytes]]) -> dict[tuple[int, int], int] | None:
    """The next offset by input and partition, from all pairs of a state; None in the middle of a change."""
    found = {}
    for key, value in pairs:
        if key == CONTINUATION or key.startswith(_HALF) or (key == PHASE and value != BEGUN):
            return None
        if key.startswith(_FRONTIER):
            place = key[len(_FRONTIER) :]
            found[place[0], int.from_bytes(place[1:], "big")] = read_long(value, 0)[0]
    return found


@lru_cache(_MOST_PLACES)
def marked_key(number: int, partition: int) -> bytes:
    return MARKED + bytes((number,)) + partition.to_bytes(4, "big")


def encode_sending(counts: bytes, last: Sequence[bytes | None]) -> bytes:
    """The phase in which joined rows are sent. counts: the key of a group's. last: the idents of the last combination
    that was sent.
    """
    return SENDING + encode_bytes(counts) + encode_continuation(Continuation(0, tuple(last)))


def decode_sending(phase: bytes) -> tuple[bytes, tuple[bytes | None, ...]]:
    """The key of the counts of the group, and the idents of the last combination."""
    size, at = read_long(phase, 1)
    return phase[at : at + size], decode_continuation(phase[at + size :]).last


def split_row(key: bytes) -> tuple[bytes, Group]:
    """The start of a row's key, which all keys of rows of its group have, and the group."""
    size, at = read_long(key, 1)
    end = at + size
    rest, start = read_long(key, end)
    return key[: start + rest], Group(key[at:end], key[start : start + rest])


def encode_row(sequence: int, columns: bytes) -> bytes:
    return encode_long(sequence) + columns


def decode_row(ident: bytes, value: bytes) -> StoredRow:
    sequence, end = read_long(value, 0)
    return StoredRow(ident, sequence, value[end:])


def encode_counts(counts: Sequence[int]) -> bytes | None:
    """None for a group without rows, which the state does not have."""
    return b"".join(map(encode_long, counts)) if any(counts) else None


def decode_counts(value: bytes | None, inputs: int) -> tuple[int, ...]:
    if value is None:
        return (0,) * inputs
    counts, at = [], 0
    for _ in range(inputs):
        count, at = read_long(value, at)
        counts.append(count)
    return tuple(counts)


def encode_continuation(continuation: Continuation) -> bytes:
    idents = (b"\x00" if ident is None else b"\x01" + encode_bytes(ident) for ident in continuation.last)
    return encode_long(continuation.offset) + encode_long(len(continuation.last)) + b"".join(idents)


def decode_continuation(value: bytes) -> Continuation:
    offset, at = read_long(value, 0)
    size, at = read_long(value, at)
    last: list[bytes | None] = []
    for _ in range(size):
        is_row, at = value[at], at + 1
        if not is_row:
            last.append(None)
            continue
        length, at = read_long(value, at)
        last.append(value[at : at + length])
        at += length
    return Continuation(offset, tuple(last))
