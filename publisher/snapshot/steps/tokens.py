"""The tokens of a snapshot: those that this node has of the table, and those that are sent of the files of now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span, spans
from publisher.snapshot.connections import node
from publisher.snapshot.state.parts import part_end
from publisher.snapshot.state.token_selection import TokenSelection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from publisher.snapshot.connections.link import Link
    from publisher.snapshot.connections.nodetool import Nodetool
    from publisher.snapshot.state.current_record import CurrentRecord


class TokensMovedError(Exception):
    """The node has other Cassandra partitions of a repair than when its files were taken."""


class OwnedTokens:
    """Asks the node which tokens it has. Tokens may move to other nodes at any time: the node is asked each time."""

    def __init__(self, link: Link, nodetool: Nodetool, current: CurrentRecord) -> None:
        self._link = link
        self._nodetool = nodetool
        self._current = current

    def selected(self) -> list[TokenRange]:
        """Return the tokens of this node that the snapshot sends."""
        return self._current.record.portion.of(self._owned())

    def of_files(self, ranges: Sequence[TokenRange]) -> list[TokenRange]:
        """Return the tokens of these ranges for which the files of now were taken."""
        done_to, until = self._current.record.done_to, self._current.record.until
        if done_to is None and until is None:
            return list(ranges)
        first = MINIMUM if done_to is None else done_to + 1
        return TokenSelection((Span(first, MAXIMUM if until is None else until),)).of(ranges)

    def part_end(self, file_bytes: int, part_bytes: float) -> int | None:
        """Return the last token for which the files of now are kept; see parts.part_end. part_bytes 0: no bound."""
        record = self._current.record
        if record.portion.repair is not None or not part_bytes or file_bytes <= part_bytes:
            return None
        owned, place, done_to = self._owned(), record.place, record.done_to
        sent = spans(record.portion.of(owned))
        if place is not None and (done_to is None or done_to < place.token):
            done_to = place.token - 1  # other keys may have that token
        return part_end(spans(owned), sent, done_to, file_bytes, part_bytes)

    def check_unmoved(self) -> None:
        """Note which nodes have a repair's Cassandra partitions, before the first files are taken.

        TokensMovedError if the node later has others of them: its files lack those, or it would not send them.
        """
        repair = self._current.record.portion.repair
        if repair is None:
            return
        counts, noted = self._replicas_of(repair.keys), self._current.record.replicas
        if not noted:
            self._current.save(replicas=counts)
        elif [bool(count) for count in counts] != [bool(count) for count in noted]:
            raise TokensMovedError("tokens have moved to or from this node: repeat the audit")

    def _replicas_of(self, keys: Sequence[bytes]) -> tuple[int, ...]:
        """RepairStep.replicas of Cassandra partitions."""
        ranges = self._nodetool.replica_counts(self._current.record.keyspace, node.broadcast_address(self._link.client))
        found = []
        for token in map(decorated_token, keys):
            counts = (
                count
                for token_range, count in ranges
                if any(first <= token <= last for first, last in spans([token_range]))
            )
            found.append(next(counts, 0))
        return tuple(found)

    def _owned(self) -> list[TokenRange]:
        """Return the tokens whose replica, or primary replica, this node is."""
        record = self._current.record
        address = node.broadcast_address(self._link.client)
        return self._nodetool.owned_ranges(record.keyspace, address, only_primary=record.portion.is_primary)
