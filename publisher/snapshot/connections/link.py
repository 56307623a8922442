"""The worker's own connections: to the node with its schema, and to Kafka. It does not use the publisher's."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Protocol

from cdc_common.clients.cassandra import CassandraClient, Node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import raw
from publisher import state_files
from publisher.inflight import PendingMessages
from publisher.kafka.sender import Sender
from publisher.own_connection import connect_beside_publisher, schema_file
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import LogSegments, RowEnds
from publisher.topics.raw_topics import RawTopics, send_to_all_raw_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cdc_native.formats.batches import Batch
    from publisher.mutations.messages import OutgoingMessage
    from publisher.settings import Settings
    from publisher.snapshot.connections.node import Published
    from publisher.tables.published_table import PublishedTable
    from publisher.topics.raw_topics import RawTopic

PAUSE_SECONDS = 0.2
_POLL_SECONDS = 0.1


class Orders(Protocol):
    """The used part of worker.Orders. `serve` and `published` raise to stop the worker. Both call `while_held` while it
    is held.
    """

    while_held: Callable[[], None] | None

    def serve(self) -> None: ...

    def published(self) -> Published: ...


@dataclass(frozen=True, slots=True)
class Link:
    """`orders` are heard while it waits."""

    # The connection to the node.
    client: CassandraClient
    # The node's facts.
    node: Node
    # The schema as the node shows it.
    schema: NodeSchema
    # The raw topics of the published tables.
    raw_topics: RawTopics
    # Sends raw messages.
    sender: Sender
    # The orders of the publisher, which are heard while it waits.
    orders: Orders
    # The file of the schemas.
    schema_file: Path

    def serve(self) -> None:
        """See Orders.serve."""
        self.orders.serve()

    def pause(self) -> None:
        """Serve, then sleep for PAUSE_SECONDS."""
        self.orders.serve()
        sleep(PAUSE_SECONDS)

    def find_table(self, table_id: str) -> PublishedTable:
        """Return the table as the node has it now. CdcError TABLE_NOT_PUBLISHED if it is not published."""
        self.schema.refresh()
        for table in self.schema.current_tables():
            if table.id.hex() == table_id:
                return table
        raise CdcError(
            Code.TABLE_NOT_PUBLISHED,
            f"The table {table_id} is not published: it is dropped, has cdc = false, or is excluded by the settings.",
            "Only a published table can have a snapshot: ALTER TABLE … WITH cdc = true.",
        )

    def truncated_at(self, table: PublishedTable) -> int:
        """Return when this node last truncated the table, in ms; 0 if never.

        It is the publisher's time. For a node whose clock was set back it is not the time that the node records, and it
        depends on truncations that this process has not seen.
        """
        self.schema.refresh()
        while True:
            ends = RowEnds(LogSegments())
            ends.load((state_files.read(self.schema_file) or {}).get("row_ends"))
            if ends.recorded_to(table.id) >= self.schema.row_ends.recorded_to(table.id):
                return ends.recorded_at(table.id)
            self.serve()  # the publisher has not noticed it yet
            sleep(_POLL_SECONDS)

    def send_to_all(self, outgoing: OutgoingMessage) -> None:
        """Send it to every raw partition, new ones too, and wait until all have acknowledged it."""
        self.raw_topics.open(outgoing.table)
        self.raw_topics.refresh_partition_counts()
        raw_topic = self.raw_topics.open(outgoing.table)
        pending = PendingMessages()
        value = raw.encode(outgoing.message, raw_topic.schema_id)
        for _ in send_to_all_raw_partitions(self.sender, raw_topic, value, pending):
            self.wait()
        while pending.outstanding:
            self.wait()

    def send_and_wait(self, table: PublishedTable, messages: Sequence[OutgoingMessage]) -> None:
        """Send them, and wait until all are acknowledged."""
        raw_topic = self.raw_topics.open(table)
        pending = PendingMessages()
        self.send(raw_topic, messages, pending)
        while pending.outstanding:
            self.wait()

    def send(self, raw_topic: RawTopic, unit: Sequence[OutgoingMessage], pending: PendingMessages) -> int:
        """Queue the messages of a unit, which `pending` counts; their bytes."""
        size = 0
        pending.outstanding += len(unit)
        for outgoing in unit:
            value = raw.encode(outgoing.message, raw_topic.schema_id)
            size += len(value)
            while not self.sender.send(raw_topic.name, outgoing.partition_key, value, pending):
                self.wait()
        return size

    def send_batch(self, topics: tuple[str, ...], batch: Batch, pending: PendingMessages) -> None:
        """Queue the messages of a batch, which `pending` counts. `topics`: that of each of its tables."""
        pending.outstanding += len(batch)
        first = 0
        while (first := self.sender.send_batch(topics, batch, first, pending)) < len(batch):
            self.wait()

    def wait(self) -> None:
        """Wait a moment for acknowledgements, then serve."""
        self.sender.poll(_POLL_SECONDS)
        self.serve()


@contextmanager
def open_link(settings: Settings, orders: Orders) -> Iterator[Link]:
    with connect_beside_publisher(settings) as own:
        yield Link(*own, orders, schema_file(settings))
