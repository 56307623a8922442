"""The values of counter cells (org.apache.cassandra.db.context.CounterContext).

A context is a header, the number of its elements (2 bytes, signed) and two bytes for each global or local shard, and a
body, one shard after the other in the order of their ids: counter id (16 bytes), clock (8), count (8). A header's
element is the index of a local shard, or the index - 32768 of a global one; a shard not named there is remote.
"""

from __future__ import annotations

import struct
from enum import Enum
from typing import NamedTuple

from cassandra_storage.formats.errors import FormatError

_SHARD = struct.Struct(">16sqq")
_GLOBAL_OFFSET = -(2**15)  # Short.MIN_VALUE


class ShardKind(Enum):
    """The kinds of shards. Since 2.1 only GLOBAL ones are written."""

    REMOTE = 0
    LOCAL = 1
    GLOBAL = 2


class Shard(NamedTuple):
    """The count of one node."""

    # The node's counter id, 16 bytes.
    id: bytes
    # The logical clock of the value.
    clock: int
    # The count.
    value: int
    # Global, local or remote.
    kind: ShardKind


class _Relation(Enum):
    """CounterContext.Relationship of two shards of one id: which one is kept, or their sum (two local ones)."""

    EITHER = 0
    LEFT = 1
    RIGHT = 2
    SUM = 3


def merge_contexts(left: bytes, right: bytes) -> bytes:
    """CounterContext.merge: each id's shard by the rules global over local over remote, the higher clock, then the
    higher count; local ones are added. A context that has all is given back as it is.
    """
    merged: list[Shard] = []
    left_has_all = right_has_all = True
    for ours, theirs in _pair(shards(left), shards(right)):
        if ours is None or theirs is None:
            left_has_all &= ours is not None
            right_has_all &= theirs is not None
            merged.extend(shard for shard in (ours, theirs) if shard)
            continue
        relation = _relation(ours, theirs)
        left_has_all &= relation in (_Relation.EITHER, _Relation.LEFT)
        right_has_all &= relation in (_Relation.EITHER, _Relation.RIGHT)
        merged.append(_merged_shard(relation, ours, theirs))
    if left_has_all:
        return left
    return right if right_has_all else _context(merged)


def total(context: bytes) -> int:
    """CounterContext.total: the counter's value, the sum of all counts."""
    return _signed64(sum(count for _, _, count in _SHARD.iter_unpack(context[_header_length(context) :])))


def clear_marked(context: bytes) -> bytes:
    """DeserializationHelper.maybeClearCounterValue, as a commit log is read: in a context whose header's count is
    negative (ContextState.markLocalToBeCleared) local shards become remote ones.
    """
    return context if context[:1] < b"\x80" and len(context) > 1 else without_local(context)


def without_local(context: bytes) -> bytes:
    """CounterContext.clearAllLocal: local shards become remote ones."""
    length = _header_length(context)
    elements = [context[place : place + 2] for place in range(2, length, 2)]
    kept = [element for element in elements if element[0] >= 0x80]
    if len(kept) == len(elements):
        return context
    return len(kept).to_bytes(2, "big") + b"".join(kept) + context[length:]


def _header_length(context: bytes) -> int:
    if len(context) < 2:
        raise FormatError(f"a counter context of {len(context)} bytes")
    length = 2 + 2 * abs(int.from_bytes(context[:2], "big", signed=True))  # negative: its local shards are to go
    if length > len(context) or (len(context) - length) % _SHARD.size:
        raise FormatError(f"a counter context of {len(context)} bytes with a header of {length}")
    return length


def shards(context: bytes) -> list[Shard]:
    """The shards of a context, in its order."""
    length = _header_length(context)
    header = memoryview(context)[2:length]
    elements = [element for (element,) in struct.iter_unpack(">h", header)]
    found = []
    at = 0
    for index, (id_, clock, value) in enumerate(_SHARD.iter_unpack(context[length:])):
        kind = ShardKind.REMOTE
        if at < len(elements) and elements[at] in (index, index + _GLOBAL_OFFSET):
            kind = ShardKind.LOCAL if elements[at] == index else ShardKind.GLOBAL
            at += 1
        found.append(Shard(id_, clock, value, kind))
    return found


def _pair(left: list[Shard], right: list[Shard]) -> list[tuple[Shard | None, Shard | None]]:
    """Both lists in the order of their ids, equal ids side by side."""
    pairs: list[tuple[Shard | None, Shard | None]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i].id == right[j].id:
            pairs.append((left[i], right[j]))
            i, j = i + 1, j + 1
        elif left[i].id < right[j].id:
            pairs.append((left[i], None))
            i += 1
        else:
            pairs.append((None, right[j]))
            j += 1
    pairs.extend((shard, None) for shard in left[i:])
    pairs.extend((None, shard) for shard in right[j:])
    return pairs


def _relation(left: Shard, right: Shard) -> _Relation:
    """CounterContext.compare."""
    if left.kind is not right.kind:
        return _Relation.LEFT if left.kind.value > right.kind.value else _Relation.RIGHT
    if left.kind is ShardKind.LOCAL:
        return _Relation.SUM
    if left.clock == right.clock:
        if left.value == right.value:
            return _Relation.EITHER
        return _Relation.LEFT if left.value > right.value else _Relation.RIGHT
    if left.kind is ShardKind.GLOBAL:
        return _Relation.LEFT if left.clock > right.clock else _Relation.RIGHT
    return _Relation.LEFT if _remote_clock_wins(left.clock, right.clock) else _Relation.RIGHT


def _remote_clock_wins(left: int, right: int) -> bool:
    """The rule of two different clocks of remote shards, negative ones included."""
    if left < 0:
        return right > 0 or left < right
    return right > 0 and left > right


def _merged_shard(relation: _Relation, left: Shard, right: Shard) -> Shard:
    if relation is _Relation.SUM:
        return Shard(left.id, _signed64(left.clock + right.clock), _signed64(left.value + right.value), ShardKind.LOCAL)
    return left if relation is _Relation.LEFT else right


def _context(shards: list[Shard]) -> bytes:
    if len(shards) > -_GLOBAL_OFFSET:
        raise FormatError(f"a counter of {len(shards)} shards")
    elements = [
        index + (_GLOBAL_OFFSET if shard.kind is ShardKind.GLOBAL else 0)
        for index, shard in enumerate(shards)
        if shard.kind is not ShardKind.REMOTE
    ]
    header = struct.pack(f">h{len(elements)}h", len(elements), *elements)
    return header + b"".join(_SHARD.pack(shard.id, shard.clock, shard.value) for shard in shards)


def _signed64(number: int) -> int:
    """A Java long's overflow."""
    return (number + 2**63) % 2**64 - 2**63
