"""Follows the node's tables: keeps their schemas current, and a raw topic open for each published table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publisher.housekeeping import Housekeeping
    from publisher.raw_topics import RawTopic, RawTopics
    from publisher.schema import NodeSchema, PublishedTable
    from publisher.server_calls import ServerCalls


class TableFollower:
    """`follow_schema` and `start` raise CdcError if a server is unreachable; the other methods wait for it."""

    def __init__(
        self, schema: NodeSchema, raw_topics: RawTopics, housekeeping: Housekeeping, calls: ServerCalls
    ) -> None:
        self._schema = schema
        self._raw_topics = raw_topics
        self._housekeeping = housekeeping
        self._calls = calls

    def start(self) -> None:
        """Open the tables topic, and the raw topics of the node's tables."""
        self._calls.run_in_background(self._raw_topics.open_tables_topic)
        self.follow_schema()

    def follow_schema(self) -> bool:
        """Read the schema if it has changed, and open the raw topics of the node's tables, with their marks; True if it
        has changed.
        """
        has_changed = self._schema.refresh()
        for table in self._schema.current_tables():
            if self._raw_topics.find_open(table) is None:
                self._raw_topics.open(table)
                self._housekeeping.serve(0)  # opening a thousand new tables takes more than a minute
            self._raw_topics.send_mark(table)
        return has_changed

    def wait_for_schema(self) -> bool:
        """Call follow_schema, and retry while a server is unreachable."""
        return self._calls.retry_while_unreachable(self.follow_schema)

    def raw_topic_of(self, table: PublishedTable) -> RawTopic:
        """The table's raw topic, opened if it is not open."""
        opened = self._raw_topics.find_open(table)
        return opened or self._calls.retry_while_unreachable(partial(self._raw_topics.open, table))

    def clear_mark(self, table_id: bytes, up_to: int) -> None:
        """Tell the materializer that a table which is not marked here lacks nothing from before `up_to` (µs); see
        RawTopics.clear_mark.
        """
        self._read_requests()
        self._clear_mark(table_id, up_to)

    def follow_requests(self) -> None:
        """Mark the tables whose rows the materializer lacks since a TRUNCATE, and send again the marks of this node
        that another one's snapshot has cleared.
        """
        self._read_requests()
        for table_id, lost_at in self._raw_topics.requests.items():
            known = self._schema.requested_at(table_id)
            if self._schema.note_request(table_id, lost_at):
                self._clear_mark(table_id, known)
        for table in self._schema.current_tables():
            self._calls.retry_while_unreachable(partial(self._raw_topics.send_mark, table))

    def _read_requests(self) -> None:
        self._calls.retry_while_unreachable(partial(self._calls.run_in_background, self._raw_topics.read_requests))

    def _clear_mark(self, table_id: bytes, up_to: int) -> None:
        table = self._schema.published.get(table_id)
        if table is not None and not table.needs_snapshot_since:
            self._calls.retry_while_unreachable(partial(self._raw_topics.clear_mark, table, up_to))

    def refresh_partition_counts(self) -> None:
        """See RawTopics.refresh_partition_counts."""
        self._calls.retry_while_unreachable(self._refresh_in_background)

    def _refresh_in_background(self) -> None:
        self._calls.run_in_background(self._raw_topics.refresh_partition_counts)
