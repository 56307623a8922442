"""A state with the writes of a chunk over it."""

from __future__ import annotations

from collections import defaultdict
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING

from joinery.joining.layout import (
    StoredRow,
    after_prefix,
    counts_key,
    decode_counts,
    decode_row,
    encode_counts,
    encode_row,
    rows_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from joinery.joining.records import Group
    from stream_runtime.state.reader import StateReader


class Overlay:
    """Reads what a chunk has written so far, or the state."""

    def __init__(self, state: StateReader, inputs: int) -> None:
        self.writes: dict[bytes, bytes | None] = {}
        self._state = state
        self._inputs = inputs
        self._rows: defaultdict[bytes, dict[bytes, bytes | None]] = defaultdict(dict)  # by prefix, then by whole key

    def get(self, key: bytes) -> bytes | None:
        return self.writes[key] if key in self.writes else self._state.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        self.writes[key] = value

    def counts(self, group: Group) -> tuple[int, ...]:
        """The number of rows of each input."""
        return decode_counts(self.get(counts_key(group)), self._inputs)

    def put_counts(self, group: Group, counts: Sequence[int]) -> None:
        self.put(counts_key(group), encode_counts(counts))

    def row(self, group: Group, number: int, ident: bytes) -> StoredRow | None:
        value = self.get(rows_prefix(group, number) + ident)
        return None if value is None else decode_row(ident, value)

    def put_row(self, group: Group, number: int, row: StoredRow) -> None:
        self._write_row(group, number, row.ident, encode_row(row.sequence, row.columns))

    def delete_row(self, group: Group, number: int, ident: bytes) -> None:
        self._write_row(group, number, ident, None)

    def rows(self, group: Group, number: int, first: bytes = b"") -> Iterator[StoredRow]:
        """The rows of an input in a group, by rising idents, from an ident on. They are read one by one."""
        prefix = rows_prefix(group, number)
        start, written = prefix + first, self._rows.get(prefix, {})
        stored = (pair for pair in self._state.scan(start, after_prefix(prefix)) if pair[0] not in written)
        own = sorted((key, value) for key, value in written.items() if value is not None and key >= start)
        for key, value in merge(stored, own, key=itemgetter(0)):
            yield decode_row(key[len(prefix) :], value)

    def _write_row(self, group: Group, number: int, ident: bytes, value: bytes | None) -> None:
        prefix = rows_prefix(group, number)
        key = prefix + ident
        self.writes[key] = value
        self._rows[prefix][key] = value
