"""The state as one chunk sees it: the committed state, and over it the chunk's own writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from cassandra_storage.formats.rows.row import Row
from materializer.rows.written_keys import WrittenKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stream_runtime.state.reader import StateReader


class StoredRow(NamedTuple):
    """A row as the state stores it."""

    # The merged row.
    row: Row
    # The number of changes that have been emitted for it.
    row_sequence: int


# The value of a row: as it is stored, or, of a row that this chunk has changed, before it is encoded.
RowValue: TypeAlias = bytes | StoredRow


class Overlay:
    """Reads through to the committed state and keeps the chunk's writes, which become its changelog.

    Changed rows are kept as StoredRow and encoded once, when the chunk ends (RowCodec.encode_rows): a row may change
    many times in a chunk. Read regular rows with `get_row` and `scan_rows`, everything except them with `get` and
    `scan`.
    """

    __slots__ = ("_fetched", "_keys", "_reader", "_unencoded", "_writes")

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._fetched: dict[bytes, bytes | None] = {}
        self._writes: dict[bytes, RowValue | None] = {}
        self._keys = WrittenKeys()  # of _writes
        self._unencoded: dict[bytes, None] = {}  # keys whose value is or was a StoredRow

    @property
    def has_writes(self) -> bool:
        return bool(self._writes)

    @property
    def writes(self) -> dict[bytes, bytes | None]:
        """The chunk's writes (None deletes), once its rows are encoded."""
        for key in self._unencoded:
            _stored(self._writes[key])
        return cast("dict[bytes, bytes | None]", self._writes)

    def shared(
        self,
    ) -> tuple[dict[bytes, Any], dict[bytes, bytes | None], list[bytes], Callable[[bytes], bytes | None]]:
        """Return the parts that the native core reads and writes: the writes, the entries that were read, the keys that
        are new among the writes, and the function that reads a key of the committed state.
        """
        return self._writes, self._fetched, self._keys.added, self._reader.get

    def changed_rows(self) -> list[tuple[bytes, StoredRow]]:
        """The rows that are not encoded yet."""
        written = ((key, self._writes[key]) for key in self._unencoded)
        return [(key, value) for key, value in written if isinstance(value, StoredRow)]

    def prefetch(self, keys: set[bytes]) -> None:
        """Read many keys at once, in their order: RocksDB reads fastest that way."""
        wanted = sorted(keys)
        self._fetched.update(zip(wanted, self._reader.get_many(wanted), strict=True))

    def get(self, key: bytes) -> bytes | None:
        return _stored(self.get_row(key))

    def get_row(self, key: bytes) -> RowValue | None:
        """Return the row of a regular row's key, as `get` does for other keys."""
        if key in self._writes:
            return self._writes[key]
        if key not in self._fetched:
            self._fetched[key] = self._reader.get(key)
        return self._fetched[key]

    def put(self, key: bytes, value: bytes | None) -> None:
        self.put_row(key, value)

    def put_row(self, key: bytes, value: RowValue | None) -> None:
        """Write the row of a regular row's key, as `put` does for other keys."""
        if key not in self._writes:
            self._keys.added.append(key)
        self._writes[key] = value
        if isinstance(value, StoredRow):
            self._unencoded[key] = None

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Scan as StateReader.scan does, including this chunk's writes. The caller may write more during the scan."""
        for key, value in self.scan_rows(start, end):
            assert isinstance(value, bytes)
            yield key, value

    def scan_rows(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, RowValue]]:
        """Scan as `scan` does, for keys that may include regular rows."""
        written = self._keys.between(start, end)
        position = 0
        for key, value in self._reader.scan(start, end):
            while position < len(written) and written[position] < key:
                yield from self._written(written[position])
                position += 1
            if position < len(written) and written[position] == key:
                position += 1
            if key in self._writes:
                yield from self._written(key)
            else:
                yield key, value
        for key in written[position:]:
            yield from self._written(key)

    def last(self, start: bytes, end: bytes) -> tuple[bytes, bytes] | None:
        """The last of the pairs of `scan`."""
        committed = next((pair for pair in self._reader.scan_back(start, end) if pair[0] not in self._writes), None)
        for key in reversed(self._keys.between(start, end)):
            value = _stored(self._writes[key])
            if value is not None:
                return committed if committed is not None and committed[0] > key else (key, value)
        return committed

    def _written(self, key: bytes) -> Iterator[tuple[bytes, RowValue]]:
        value = self._writes[key]
        if value is not None:
            yield key, value


def _stored(value: RowValue | None) -> bytes | None:
    assert not isinstance(value, StoredRow), "a regular row that is not encoded yet"
    return value
