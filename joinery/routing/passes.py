"""Whether a row passes a filter, by the Avro bytes of its column."""

from __future__ import annotations

import struct
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.avro.skipping import read_long
from joinery.planning.plan import Target
from joinery.planning.row_filters import Kind, RowFilter, ordered
from joinery.routing.pieces import Piece, make_piece

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.avro.schemas import Named, Tree


class FilterPiece(NamedTuple):
    """A filter of the rows of one schema."""

    # The filter.
    filter: RowFilter
    # Its column.
    piece: Piece

    def passes(self, data: bytes, ends: Sequence[int]) -> bool:
        """Whether a row passes. ends: where each field of the record begins, and where the last one ends."""
        value = self.piece.value(data, ends)
        given = self.filter
        if value is None:
            return given.passes_null
        if given.kind is Kind.ANY:
            return not given.passes_null
        found = _read(given.kind, value)
        at = bisect_right(given.ranges, found, key=_first) - 1
        return at >= 0 and _is_before_end(found, given.ranges[at][1])


def make_filter(given: RowFilter, planned: Named, row: Tree, named: Named) -> FilterPiece:
    """The filter for a record of one schema. RouteError if the column's type is not that of the plan.

    planned: the named types of the plan's schema. row: the record, as a tree.
    """
    target = Target(given.column, given.field)
    return FilterPiece(given, make_piece(target, (given.field["type"], planned), row, named))


def _first(given: tuple[int | bytes, int | bytes | None]) -> int | bytes:
    return given[0]


def _is_before_end(found: int | bytes, end: int | bytes | None) -> bool:
    if isinstance(found, bytes):
        return end is None or (isinstance(end, bytes) and found < end)
    return isinstance(end, int) and found <= end


def _read(kind: Kind, value: bytes) -> int | bytes:
    match kind:
        case Kind.LONG:
            return read_long(value, 0)[0]
        case Kind.BOOLEAN:
            return int(value != b"\x00")
        case Kind.FLOAT:
            return ordered(struct.unpack("<f", value)[0])
        case Kind.DOUBLE:
            return ordered(struct.unpack("<d", value)[0])
        case _:
            return value[read_long(value, 0)[1] :]
