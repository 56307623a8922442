"""Follows the node's tables: keeps their schemas current, and a raw topic open for each published table.

A table whose topic cannot be opened waits (publisher.topics.waiting), and is tried again.
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.formats.rows.mutation import only_table
from cdc_common.errors.codes import CdcError, Code
from publisher.kafka.table_error import TableError
from publisher.topics.topic_opener import TopicOpener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.formats.schema.schema_rows import UnreadableTable
    from publisher.tables.node_schema import NodeSchema
    from publisher.tables.published_table import PublishedTable
    from publisher.topics.raw_topics import FoundTopic, RawTopic, RawTopics
    from publisher.topics.server_calls import ServerCalls
    from publisher.topics.table_problems import TableProblems
    from publisher.topics.waiting import WaitingTables
    from publisher.waits import Waits

OPEN_SECONDS = 2.0  # others wait no longer for a new table's topic
_POLL_SECONDS = 0.01
_MAY_PASS = frozenset({Code.KAFKA_UNREACHABLE, Code.REGISTRY_UNREACHABLE, Code.TABLE_WAITS})

log = structlog.get_logger(__name__)


class TableFollower:
    """`read_schema` and `start` raise CdcError if a server that all tables need is unreachable; the other methods
    wait for it.
    """

    def __init__(
        self,
        schema: NodeSchema,
        waiting: WaitingTables,
        raw_topics: RawTopics,
        problems: TableProblems,
        calls: ServerCalls,
    ) -> None:
        self._schema = schema
        self._waiting = waiting
        self._raw_topics = raw_topics
        self._problems = problems
        self._calls = calls
        self._opener = TopicOpener(raw_topics)
        self._unreadable: Mapping[bytes, UnreadableTable] = {}

    def start(self) -> Waits[None]:
        """Open the tables topic, and the raw topics of the node's tables."""
        yield from self._calls.run_in_background(self._raw_topics.open_tables_topic)
        yield from self._calls.run_in_background(
            partial(self._raw_topics.check_existing, self._schema.current_tables())
        )
        yield from self.read_schema()

    def read_schema(self) -> Waits[bool]:
        """Read the schema if it has changed, and open the raw topics of the node's tables, with their marks; True if it
        has changed.
        """
        has_changed = self._schema.read_changes()
        current = self._schema.current_tables()
        self._update_waiting({table.id for table in current}, self._schema.unreadable_tables())
        for table in current:
            if not self.is_open(table):
                yield from self._open(table)
                yield 0.0  # opening a thousand new tables takes more than a minute
            self._raw_topics.send_mark(table)
        return has_changed

    def wait_for_schema(self) -> Waits[bool]:
        """Read the schema as read_schema does; retry while a server is unreachable."""
        return self._calls.retry_while_unreachable(self.read_schema)

    def _update_waiting(self, on_node: set[bytes], unreadable: Mapping[bytes, UnreadableTable]) -> None:
        """Tables that this build cannot read wait. Those that it can read now, and those that are not published any
        more, are tried again at once.
        """
        if on_node == self._raw_topics.on_node and unreadable == self._unreadable:
            return
        self._waiting.skip_no_more(on_node)
        gone = (self._waiting.held_back & self._raw_topics.on_node) - on_node
        for table_id in (gone | self._unreadable.keys()) & self._waiting.held_back - unreadable.keys():
            self._waiting.retry_now(table_id)
        for table_id, table in unreadable.items():
            if table != self._unreadable.get(table_id):
                self._wait_unreadable(table_id, table)
        self._raw_topics.on_node, self._unreadable = on_node, unreadable

    def _wait_unreadable(self, table_id: bytes, unreadable: UnreadableTable) -> None:
        name = unreadable.qualified_name
        problem = TableError(
            Code.TABLE_NOT_PUBLISHED,
            f"The table {name} cannot be read: {unreadable.reason}.",
            f"ALTER TABLE {name} WITH cdc = false, or drop the table: what the log has of it is then skipped. Or use"
            " a build that can read it.",
        )
        table = self._schema.published.get(table_id)
        if table is None:
            self._waiting.begin(table_id, name, problem, monotonic())
        else:
            self._problems.wait(table, problem)

    def is_open(self, table: PublishedTable) -> bool:
        """Return whether the table's raw topic is open with this schema."""
        return self._raw_topics.find_open(table) is not None

    def open_unless_waiting(self, table: PublishedTable) -> Waits[bool]:
        """Open the table's raw topic if it is not open and does not wait; return whether its messages can be sent."""
        if self.is_open(table):
            return True
        if table.id in self._waiting.held_back or table.id in self._waiting.skipped:
            return False
        yield from self._calls.retry_while_unreachable(partial(self._open, table))
        return self.is_open(table)

    def hold_if_waiting(self, table_id: bytes, segment: int, position: int) -> None:
        """If the table waits, its mutations from this position on are held."""
        if table_id in self._waiting.held_back:
            self._waiting.hold(table_id, segment, position)

    def wait_for_room(self, mutation: bytes, error: CdcError) -> bool:
        """Make the one table of a mutation wait for room in the quarantine; False if it is not known which table that
        is.
        """
        table = self._schema.published.get(only_table(mutation) or b"")
        if table is not None:
            self._problems.wait(table, TableError.of(error))
        return table is not None

    def raw_topic_of(self, table: PublishedTable) -> Waits[RawTopic]:
        """The raw topic of a table that is open or catches up. If it has begun to wait a moment ago, Kafka refuses the
        message, and it is held.
        """
        last = self._raw_topics.find_last(table)
        assert last is not None
        if last.table is table:
            return last
        return (yield from self._calls.call_while_unreachable(partial(self._raw_topics.announce_again, table)))

    def _open(self, table: PublishedTable) -> Waits[None]:
        """Open the table's raw topic, unless the table waits already or waits from now on."""
        waiting = self._waiting.tables.get(table.id)
        if table.id in self._waiting.held_back and waiting is not None:
            if waiting.tried is not table and waiting.ready is None:  # it is altered, or the publisher has just started
                self._waiting.retry_now(table.id)
                waiting.tried = table
            return
        try:
            found = yield from self._find_topic(table)
            self._raw_topics.add_open(self._announce(table, found))
        except TableError as problem:
            self._wait(table, problem)

    def _find_topic(self, table: PublishedTable) -> Waits[FoundTopic]:
        if self._opener.table is None:
            self._opener.begin(table)
            deadline = monotonic() + OPEN_SECONDS
            while not self._opener.is_done and monotonic() < deadline:
                yield _POLL_SECONDS
            if self._opener.is_done:
                return self._opener.take()
        raise TableError(
            Code.TABLE_WAITS,
            f"The raw topic of {table.table.qualified_name} could not be opened within {OPEN_SECONDS:.0f} s.",
            "Look whether the registry and all brokers answer. The publisher tries again.",
        )

    def _announce(self, table: PublishedTable, found: FoundTopic) -> RawTopic:
        if found.is_new and self._raw_topics.was_published(table):
            log.error(
                "a raw topic was deleted, and is created again",
                code=Code.NEEDS_SNAPSHOT.text,
                table=table.table.qualified_name,
                topic=found.name,
                fix="Take a snapshot of the table: what the job had not read is lost.",
            )
            self._schema.require_snapshots([table.id])
        return self._raw_topics.announce(table, found)

    def _wait(self, table: PublishedTable, problem: TableError) -> None:
        """A table that is not published any more is skipped, unless its problem may pass."""
        if table.id in self._raw_topics.on_node or problem.code in _MAY_PASS:
            self._problems.wait(table, problem)
        else:
            self._raw_topics.close(table.id)
            self._waiting.skip(table.id, table.table.qualified_name, problem)

    def retry_waiting(self) -> Waits[None]:
        """Try the waiting tables again whose time has come, one at a time."""
        if self._opener.is_done:
            yield from self._calls.call_while_unreachable(self._finish_retry)
        table_id = self._waiting.next_due(monotonic())
        if self._opener.table is None and table_id is not None:
            self._begin_retry(table_id)

    def _begin_retry(self, table_id: bytes) -> None:
        table, unreadable = self._schema.published.get(table_id), self._unreadable.get(table_id)
        if unreadable is not None:
            self._wait_unreadable(table_id, unreadable)
            self._schema.forget_version()
        elif table is None:
            name = self._waiting.tables[table_id].name
            problem = TableError(Code.TABLE_NOT_PUBLISHED, f"{name} is not published any more.", "None.")
            self._waiting.skip(table_id, name, problem)
        else:
            self._waiting.begin_try(table_id, table)
            self._opener.begin(table)

    def _finish_retry(self) -> None:
        table = self._opener.table
        assert table is not None
        try:
            raw_topic = self._announce(table, self._opener.take())
        except TableError as problem:
            self._wait(table, problem)
            return
        if table.id in self._waiting.tables:
            self._waiting.set_ready(table.id, self._raw_topics.set_aside(raw_topic))

    def clear_mark(self, table_id: bytes, up_to: int) -> Waits[None]:
        """Tell the materializer that a table which is not marked here lacks nothing from before `up_to` (µs); see
        RawTopics.clear_mark.
        """
        yield from self._read_requests()
        yield from self._clear_mark(table_id, up_to)

    def take_requests(self) -> Waits[None]:
        """Mark the tables whose rows the materializer lacks since a TRUNCATE, and send again the marks of this node
        that another one's snapshot has cleared.
        """
        yield from self._read_requests()
        for table_id, lost_at in self._raw_topics.requests.items():
            known = self._schema.marks.requested_at(table_id)
            if self._schema.note_request(table_id, lost_at):
                yield from self._clear_mark(table_id, known)
        for table in self._schema.current_tables():
            yield from self._calls.call_while_unreachable(partial(self._raw_topics.send_mark, table))

    def _read_requests(self) -> Waits[None]:
        return self._calls.retry_while_unreachable(
            partial(self._calls.run_in_background, self._raw_topics.read_requests)
        )

    def _clear_mark(self, table_id: bytes, up_to: int) -> Waits[None]:
        table = self._schema.published.get(table_id)
        if table is not None and not table.needs_snapshot_since:
            yield from self._calls.call_while_unreachable(partial(self._raw_topics.clear_mark, table, up_to))

    def refresh_partition_counts(self) -> Waits[None]:
        """See RawTopics.refresh_partition_counts. A table whose topic is not as it must be waits."""
        return self._calls.retry_while_unreachable(self._refresh_in_background)

    def _refresh_in_background(self) -> Waits[None]:
        for table, problem in (yield from self._calls.run_in_background(self._raw_topics.refresh_partition_counts)):
            if self.is_open(table):
                self._wait(table, problem)
