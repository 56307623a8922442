"""Find the partitions from a token on in Data.db, with an SSTable's index (org.apache.cassandra.io.sstable:
format.big.RowIndexEntry, indexsummary.IndexSummary; format.bti.PartitionIndex, io.tries.TrieNode, io.tries.Walker).

Index.db (BIG) has an entry for each partition, in their order: the key after its length (2 bytes), the position in the
data (vint), and the size (vint) of an index of its rows that follows. Summary.db has some of the keys with their
positions in Index.db, and the first and the last key. It only saves reading: what it says is compared with Index.db.

Partitions.db (BTI) is a trie of the shortest prefixes of tokens and keys that differ. Its leaves have the position in
the data, or in Rows.db, where wide partitions have their key and the position in the data.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.vint import read_int, read_unsigned_vint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_WINDOW = 1 << 16
_LARGEST_HEAD = 2 + 0xFFFF + 2 * 9  # of an entry of Index.db
_SUMMARY_HEAD = 24
_KEY_LENGTH = 4  # before the first and the last key of Summary.db
_FOOTER = 24  # of Partitions.db
_LARGEST_NODE = 3 + 256 * 8 + 9
_HAS_HASH = 8  # PartitionIndex.FLAG_HAS_HASH_BYTE
_NEXT_COMPONENT = b"\x40"


class Component(Protocol):
    """A file of an SSTable. `read` raises FormatError where it ends before."""

    size: int

    def read(self, size: int, position: int) -> bytes: ...

    def error(self, reason: str, position: int) -> FormatError: ...


class IndexEntry(NamedTuple):
    """An entry of an index."""

    # The offset of the Cassandra partition in the uncompressed data, in bytes.
    position: int
    # The serialized partition key; None where the index does not have it.
    key: bytes | None = None


def find_in_index(
    index: Component, summary: Component | None, token: int, find_next: Callable[[IndexEntry], int | None]
) -> IndexEntry | None:
    """The first partition whose token is not below `token`, by Index.db; None if there is none. FormatError if the
    entries are no such or out of order, or if Index.db ends before the entry of the data's last partition.

    A summary that does not fit Index.db is not used. `find_next`: the position in the data of the partition after the
    one of an entry, None for the last one. It is asked if all entries are below `token` and the summary does not
    confirm the last one: a file that was cut between two entries looks like a whole one.
    """
    start = 0 if summary is None else _summary_start(index, summary, token)
    before: tuple[int, bytes] | None = None
    last: IndexEntry | None = None
    for key, position, _ in _entries(index, start):
        place = (decorated_token(key), key)
        if before is not None and place <= before:
            raise index.error("a partition that is out of order", start)
        if place[0] >= token:
            return IndexEntry(position, key)
        before, last = place, IndexEntry(position, key)
    if before is None or last is None:
        raise index.error("has no entry: no partition of the data can be found", 0)
    if summary is None or _last_key(summary) != last.key:
        following = find_next(last)
        if following is not None:
            lost = f"the partitions from byte {following} of the data on cannot be found"
            raise index.error(f"ends after the entry of the token {before[0]}: {lost}", index.size)
    return None


def _last_key(summary: Component) -> bytes | None:
    """Return the key of the SSTable's last partition, as Summary.db has it (SSTableReader.saveSummary); None if it has
    none.
    """
    try:
        position = _SUMMARY_HEAD + int.from_bytes(summary.read(8, 8), "big")
        position += _KEY_LENGTH + int.from_bytes(summary.read(_KEY_LENGTH, position), "big")
        size = int.from_bytes(summary.read(_KEY_LENGTH, position), "big")
        if position + _KEY_LENGTH + size != summary.size:
            return None
        return summary.read(size, position + _KEY_LENGTH)
    except (FormatError, OverflowError):
        return None


def _entries(index: Component, start: int) -> Iterator[tuple[bytes, int, int]]:
    """(key, position in the data, position of the entry) from the entry at `start` on."""
    buf, base, pos = b"", start, 0
    while base + pos < index.size:
        if len(buf) - pos < _LARGEST_HEAD and base + len(buf) < index.size:
            base += pos
            pos = 0
            buf = index.read(min(_LARGEST_HEAD + _WINDOW, index.size - base), base)
        try:
            key_start = pos + 2
            key_end = key_start + (buf[pos] << 8 | buf[pos + 1])
            position, end = read_unsigned_vint(buf, key_end)
            size, end = read_int(buf, end)
        except (IndexError, FormatError):
            raise index.error("an entry that is none", base + pos) from None
        if size < 0 or base + end + size > index.size:
            raise index.error(f"an index of {size} bytes of a partition's rows", base + pos)
        yield buf[key_start:key_end], position, base + pos
        pos = end + size
        if pos > len(buf):
            base, buf, pos = base + pos, b"", 0


def _summary_start(index: Component, summary: Component, token: int) -> int:
    """The position in Index.db of the last sampled partition whose token is below `token`; 0 if there is none."""
    try:
        entry = _search_summary(summary, token)
        if entry is None:
            return 0
        key, position = entry
        found, _, _ = next(_entries(index, position))
    except (FormatError, StopIteration):
        return 0
    return position if found == key else 0


def _search_summary(summary: Component, token: int) -> tuple[bytes, int] | None:
    head = summary.read(_SUMMARY_HEAD, 0)
    count, size = int.from_bytes(head[4:8], "big"), int.from_bytes(head[8:16], "big")

    def sample(number: int) -> tuple[bytes, int]:
        """(key, position in Index.db); the offsets count from where the first of them is written."""
        last = number == count - 1
        offsets = summary.read(4 if last else 8, _SUMMARY_HEAD + 4 * number)
        start = int.from_bytes(offsets[:4], "little")
        end = size if last else int.from_bytes(offsets[4:], "little")
        if not 4 * count <= start <= end - 8 or end - start > _LARGEST_HEAD:
            raise summary.error("a sample that is none", _SUMMARY_HEAD + 4 * number)
        data = summary.read(end - start, _SUMMARY_HEAD + start)
        return data[:-8], int.from_bytes(data[-8:], "little")

    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if decorated_token(sample(middle)[0]) < token:
            low = middle + 1
        else:
            high = middle
    return sample(low - 1) if low else None


def find_before_in_trie(partitions: Component, rows: Component, token: int) -> IndexEntry:
    """The last partition whose token is below `token`, or one that is earlier, by Partitions.db and Rows.db; the start
    of the data if there is none. FormatError if there is no such trie.

    Partitions.db has no checksum, and most leaves have no key: whoever reads on from a partition that is too early
    misses nothing, and sees that one is too late.
    """
    footer = partitions.read(_FOOTER, max(partitions.size - _FOOTER, 0))
    node = _Node(partitions, int.from_bytes(footer[16:], "big"))
    lesser: tuple[int, int] | None = None  # the last child before the path, and its parent
    for byte in _NEXT_COMPONENT + (token + (1 << 63)).to_bytes(8, "big"):
        before, child = node.around(byte)
        if before is not None:
            lesser = before, node.position
        if child is None:
            break
        node = _Node(partitions, child, node.position)
    if lesser is None:
        return IndexEntry(0)
    node = _Node(partitions, *lesser)
    while node.has_children:
        node = _Node(partitions, node.last_child, node.position)
    return _leaf(node, rows)


def _leaf(node: _Node, rows: Component) -> IndexEntry:
    position = node.payload()
    if position < 0:
        return IndexEntry(~position)
    size = min(_LARGEST_HEAD, rows.size - position)
    if size <= 2:
        raise node.error(f"a partition's rows at {position}")
    data = rows.read(size, position)
    end = 2 + (data[0] << 8 | data[1])
    try:
        return IndexEntry(read_unsigned_vint(data, end)[0], data[2:end])
    except FormatError:
        raise rows.error("no key and position", position) from None


class _Node:
    """TrieNode at a position; children lie before it in the file. `parent`: the position of its parent."""

    def __init__(self, file: Component, position: int, parent: int | None = None) -> None:
        self._file = file
        self.position = position
        if not 0 <= position < (file.size - _FOOTER if parent is None else parent):
            raise file.error(f"a node at {position}", position if parent is None else parent)
        self._data = file.read(min(_LARGEST_NODE, file.size - position), position)
        self._kind = _KINDS[self._data[0] >> 4]
        self._children: list[tuple[int, int]] = []  # (byte, position)
        try:
            self._payload_start = self._read_children()
        except IndexError:
            raise self.error("a node that ends early") from None

    def error(self, reason: str) -> FormatError:
        return self._file.error(reason, self.position)

    @property
    def has_children(self) -> bool:
        return bool(self._children)

    @property
    def last_child(self) -> int:
        return self._children[-1][1]

    def around(self, byte: int) -> tuple[int | None, int | None]:
        """The children for the next smaller byte, and for that one."""
        before = None
        for child, position in self._children:
            if child >= byte:
                return before, position if child == byte else None
            before = position
        return before, None

    def payload(self) -> int:
        """PartitionIndex.getIndexPos: a position in Rows.db, or ~ that in Data.db."""
        flags = 0 if self._kind.has_delta_in_flags else self._data[0] & 0x0F
        start, size = self._payload_start, flags
        if flags >= _HAS_HASH:
            start, size = start + 1, flags - _HAS_HASH + 1
        if not size or start + size > len(self._data):
            raise self.error("a leaf without a position")
        return int.from_bytes(self._data[start : start + size], "big", signed=True)

    def _read_children(self) -> int:
        """The position in the node after its children; IndexError if it ends before."""
        data, kind = self._data, self._kind
        if kind.shape == "leaf":
            return 1
        if kind.has_delta_in_flags:
            size = 2 if kind.bits == 4 else 3
            delta = (data[0] & 0x0F) if size == 2 else int.from_bytes(data[:2], "big") & 0xFFF
            self._add(data[size - 1], delta)
            return size
        if kind.shape == "single":
            self._add(data[1], self._delta(2, 0))
            return 2 + kind.bits // 8
        if kind.shape == "sparse":
            count = data[1]
            start = 2 + count
            for index in range(count):
                self._add(data[2 + index], self._delta(start, index))
            if any(left >= right for (left, _), (right, _) in pairwise(self._children)):
                raise self.error("a node whose children are out of order")
        else:
            count, start = data[2] + 1, 3
            for index in range(count):
                delta = self._delta(start, index)
                if delta:
                    self._add(data[1] + index, delta)
        return start + (count * kind.bits + 7) // 8

    def _delta(self, start: int, index: int) -> int:
        bit = index * self._kind.bits
        first, end = start + bit // 8, start + (bit + self._kind.bits + 7) // 8
        if end > len(self._data):
            raise IndexError
        value = int.from_bytes(self._data[first:end], "big")
        if self._kind.bits == 12:
            return value >> 4 if index % 2 == 0 else value & 0xFFF
        return value

    def _add(self, byte: int, delta: int) -> None:
        self._children.append((byte, self.position - delta))


class _Kind(NamedTuple):
    """A type of TrieNode: its children's positions take `bits` each, or are in the first bytes, beside the kind."""

    shape: str
    bits: int = 0
    has_delta_in_flags: bool = False


_KINDS = (
    _Kind("leaf"),
    _Kind("single", 4, has_delta_in_flags=True),
    _Kind("single", 8),
    _Kind("single", 12, has_delta_in_flags=True),
    _Kind("single", 16),
    _Kind("sparse", 8),
    _Kind("sparse", 12),
    _Kind("sparse", 16),
    _Kind("sparse", 24),
    _Kind("sparse", 40),
    _Kind("dense", 12),
    _Kind("dense", 16),
    _Kind("dense", 24),
    _Kind("dense", 32),
    _Kind("dense", 40),
    _Kind("dense", 64),
)
