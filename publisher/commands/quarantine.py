"""`cassandra-publisher quarantine`: list quarantined mutations, send those that can be decoded now, or discard one."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.errors import FormatError, UnknownTableError
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import raw
from publisher.inflight import PendingMessages
from publisher.kafka.sender import Sender
from publisher.mutations.messages import make_void_gap, split_into_messages
from publisher.mutations.quarantine import open_quarantine
from publisher.own_connection import connect_beside_publisher
from publisher.tables.node_schema import NodeSchema
from publisher.tables.stored_tables import read_known_tables
from publisher.topics.raw_topics import RawTopics, send_to_all_raw_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from publisher.mutations.messages import OutgoingMessage
    from publisher.mutations.quarantine import QuarantinedMutation
    from publisher.settings import Settings

_FLUSH_SECONDS = 60.0


def list_mutations(settings: Settings, write_line: Callable[[str], None]) -> None:
    """A line for each mutation: place, time, size and reason; no values."""
    entries = open_quarantine(settings.publisher).read_all()
    for origin, mutation, reason, quarantined_at, gaps in entries:
        write_line(
            f"{origin.place}  {quarantined_at}  {len(mutation)} bytes  gap messages for {len(gaps)} tables  {reason}"
        )
    write_line(f"{len(entries)} mutations quarantined")


def replay_mutations(settings: Settings, schema_file: Path | None, write_line: Callable[[str], None]) -> None:
    """Send the mutations that can be decoded now, also with the tables in another publisher's schema file; the others
    stay. CdcError QUARANTINED if any stays, and as at the publisher's start.
    """
    quarantine = open_quarantine(settings.publisher)
    learned = {} if schema_file is None else read_known_tables(schema_file)
    entries, sent = quarantine.read_all(), 0
    unknown: list[UUID] = []
    if entries:
        with _connected(settings) as connection:
            connection.schema.learn(learned)
            for entry in entries:
                try:
                    decoded = split_into_messages(entry.mutation, entry.origin, connection.schema)
                except FormatError as error:
                    write_line(f"{entry.origin.place}  not yet: {error.reason}")
                    if isinstance(error, UnknownTableError):
                        unknown.append(UUID(bytes=error.table_id))
                    continue
                connection.send(decoded.messages)
                connection.withdraw_gaps(entry)
                quarantine.remove(entry)
                sent += 1
    write_line(f"{sent} of {len(entries)} mutations sent")
    if sent < len(entries):
        raise _not_sent(len(entries) - sent, sorted(set(unknown)))


def _not_sent(count: int, unknown: Sequence[UUID]) -> CdcError:
    """The error of mutations that stay. `unknown`: the ids of tables that the node does not have any more."""
    problem = f"{count} mutations cannot be decoded and stay in quarantine."
    discard = "Or give one up: cassandra-publisher quarantine discard FILE:POSITION."
    if not unknown:
        return CdcError(Code.QUARANTINED, problem, f"Replay them with a build that can decode them. {discard}")
    ids = ", ".join(map(str, unknown))
    return CdcError(
        Code.QUARANTINED,
        f"{problem} They need the columns of tables that this node has dropped: {ids}.",
        f"Create each table again with the columns and the id that it had (CREATE TABLE … WITH ID = {unknown[0]} AND"
        " cdc = true), and replay. Or copy the schema.json of a publisher that knew it, and replay with --schema COPY. "
        + discard,
    )


def discard_mutation(settings: Settings, place: str, write_line: Callable[[str], None]) -> None:
    """Give up the mutation at `FILE:POSITION`, and withdraw its gap messages."""
    quarantine = open_quarantine(settings.publisher)
    entry = next((stored for stored in quarantine.read_all() if stored.origin.place == place), None)
    if entry is None:
        raise CdcError(
            Code.CONFIG_INVALID, f"No mutation from {place} is quarantined.", "See cassandra-publisher quarantine ls."
        )
    with _connected(settings) as connection:
        connection.withdraw_gaps(entry)
    quarantine.remove(entry)
    write_line(f"{place} is discarded: repair the rows, if other replicas have them")


class _Connection(NamedTuple):
    schema: NodeSchema
    raw_topics: RawTopics
    sender: Sender

    def send(self, messages: list[OutgoingMessage]) -> None:
        """Send the messages and wait for all acknowledgements; CdcError KAFKA_UNREACHABLE if they do not come."""
        pending = PendingMessages()
        for outgoing in messages:
            raw_topic = self.raw_topics.open(outgoing.table)
            value = raw.encode(outgoing.message, raw_topic.schema_id)
            if outgoing.is_for_all_raw_partitions:
                for _ in send_to_all_raw_partitions(self.sender, raw_topic, value, pending):
                    self._wait_for_room()
                continue
            pending.outstanding += 1
            while not self.sender.send(raw_topic.name, outgoing.partition_key, value, pending):
                self._wait_for_room()
        self.sender.flush(_FLUSH_SECONDS)
        self.sender.poll(0)
        if pending.outstanding:
            raise CdcError(
                Code.KAFKA_UNREACHABLE,
                f"Kafka has not acknowledged {pending.outstanding} messages.",
                "The mutation stays quarantined. Retry when the brokers are up; duplicates do no harm.",
            )

    def withdraw_gaps(self, entry: QuarantinedMutation) -> None:
        """Send a void gap for each gap message that was sent for the mutation, also for a table that is not published
        now: it would have the gap when it is published again.
        """
        self.send(
            [
                make_void_gap(table, gap.partition_key, entry.origin)
                for gap in entry.gaps
                if (table := self.schema.find_on_node(gap.table_id)) is not None
            ]
        )

    def _wait_for_room(self) -> None:
        self.sender.poll(0.1)


@contextmanager
def _connected(settings: Settings) -> Iterator[_Connection]:
    with connect_beside_publisher(settings) as own:
        yield _Connection(own.schema, own.raw_topics, own.sender)
