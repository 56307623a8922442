"""Makes a table wait when Kafka refuses its messages, or when its topic turns out to be unusable."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from publisher.kafka.table_error import TableError

if TYPE_CHECKING:
    from publisher.inflight import InFlight
    from publisher.kafka.sender import Sender
    from publisher.log.position import Positions
    from publisher.tables.published_table import PublishedTable
    from publisher.topics.raw_topics import RawTopics
    from publisher.topics.waiting import WaitingTables


class TableProblems:
    """Makes tables wait for their problems. Unacknowledged messages of such a table are held, and sent again once the
    problem is solved.
    """

    def __init__(
        self,
        positions: Positions,
        waiting: WaitingTables,
        raw_topics: RawTopics,
        sender: Sender,
        in_flight: InFlight,
    ) -> None:
        self._positions = positions
        self._waiting = waiting
        self._raw_topics = raw_topics
        self._sender = sender
        self._in_flight = in_flight

    def wait(self, table: PublishedTable, problem: TableError) -> None:
        """The table waits from now on."""
        self._waiting.begin(table.id, table.table.qualified_name, problem, monotonic(), table)
        if self._raw_topics.close(table.id):
            self._hold(table.id)

    def take_refusals(self) -> None:
        """Make the tables wait whose messages were refused, and only then count these messages as done: the position
        may move past them. CdcError for a topic that all tables need.
        """
        for refusal in self._sender.take_refusals():
            error, tables = refusal.error, self._raw_topics.tables_of(refusal.topic)
            if not tables:
                raise error
            for table in tables:
                waiting = self._waiting.tables.get(table.id)
                if waiting is None or waiting.ready is not None:
                    self.wait(table, TableError.of(error))
                self._hold(table.id)
            if refusal.pending is not None:
                refusal.pending.acknowledge(refusal.messages)

    def _hold(self, table_id: bytes) -> None:
        self._waiting.hold_unacknowledged(table_id, self._positions, self._in_flight.segments())
