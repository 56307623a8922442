"""The range tombstones of one Cassandra partition as disjoint pieces (org.apache.cassandra.db.RangeTombstoneList)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import DeletionTime

if TYPE_CHECKING:
    from collections.abc import Iterable


class DeletedRange(NamedTuple):
    """The rows whose byte-comparable clustering c has first <= c < last are deleted."""

    # The first clustering.
    first: bytes
    # The clustering after the range.
    last: bytes
    # The deletion.
    deletion: DeletionTime


def add_range(ranges: Iterable[DeletedRange], new: DeletedRange) -> list[DeletedRange]:
    """RangeTombstoneList.add: `ranges` (disjoint, in order) with `new`; where two overlap the superseding one stays."""
    pieces: list[DeletedRange] = []
    reached = new.first
    for old in ranges:
        first, last = max(old.first, new.first), min(old.last, new.last)
        if first >= last:
            pieces.append(old)
            continue
        winner = old.deletion if not new.deletion.supersedes(old.deletion) else new.deletion
        pieces.append(DeletedRange(old.first, first, old.deletion))
        pieces.append(DeletedRange(reached, first, new.deletion))
        pieces.append(DeletedRange(first, last, winner))
        pieces.append(DeletedRange(last, old.last, old.deletion))
        reached = last
    pieces.append(DeletedRange(reached, new.last, new.deletion))
    return _joined(sorted(piece for piece in pieces if piece.first < piece.last))


def _joined(pieces: list[DeletedRange]) -> list[DeletedRange]:
    """Adjacent pieces of one deletion become one."""
    joined: list[DeletedRange] = []
    for piece in pieces:
        if joined and joined[-1].last == piece.first and joined[-1].deletion == piece.deletion:
            joined[-1] = joined[-1]._replace(last=piece.last)
        else:
            joined.append(piece)
    return joined
