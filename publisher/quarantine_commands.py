"""`cassandra-publisher quarantine`: what could not be decoded is listed, sent once it can be, or given up."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.errors import FormatError
from cdc_messages import raw
from cdc_program.cassandra import connect, read_node
from cdc_program.errors import CdcError, Code
from publisher.app import make_channels
from publisher.inflight import Mark
from publisher.kafka import Sender
from publisher.messages import raw_messages, void_gap
from publisher.quarantine import open_quarantine
from publisher.raw_topics import Channels, send_everywhere
from publisher.schema import Schema
from publisher.selection import selection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdc_program.settings import Settings
    from publisher.messages import Outgoing
    from publisher.quarantine import Quarantined

_SECONDS = 60.0


def show(settings: Settings, say: Callable[[str], None]) -> None:
    """A line for each: place, time, size and reason; no values."""
    entries = open_quarantine(settings.publisher).entries()
    for origin, mutation, reason, at, gaps in entries:
        say(f"{origin.file}:{origin.position}  {at}  {len(mutation)} bytes  {len(gaps)} tables told  {reason}")
    say(f"{len(entries)} mutations put aside")


def replay(settings: Settings, say: Callable[[str], None]) -> None:
    """Send what can be decoded by now; what cannot stays. CdcError as the publisher's start."""
    quarantine = open_quarantine(settings.publisher)
    entries, sent = quarantine.entries(), 0
    if entries:
        with _connected(settings) as connection:
            for entry in entries:
                try:
                    outcome = raw_messages(entry.mutation, entry.origin, connection.schema)
                except FormatError as error:
                    say(f"{entry.origin.file}:{entry.origin.position}  not yet: {error.reason}")
                    continue
                connection.send(outcome.messages)
                connection.settle(entry)
                quarantine.remove(entry)
                sent += 1
    say(f"{sent} of {len(entries)} mutations sent")


def discard(settings: Settings, place: str, say: Callable[[str], None]) -> None:
    """Give up the one at `FILE:POSITION`: the tables are told that nobody waits for it."""
    quarantine = open_quarantine(settings.publisher)
    entry = next((each for each in quarantine.entries() if f"{each.origin.file}:{each.origin.position}" == place), None)
    if entry is None:
        raise CdcError(
            Code.CONFIG_INVALID, f"No mutation from {place} is put aside.", "See cassandra-publisher quarantine ls."
        )
    with _connected(settings) as connection:
        connection.settle(entry)
    quarantine.remove(entry)
    say(f"{place} is given up: repair the rows, if other replicas have them")


class _Connection(NamedTuple):
    schema: Schema
    channels: Channels
    sender: Sender

    def send(self, messages: list[Outgoing]) -> None:
        """And wait until all are acknowledged; CdcError KAFKA_UNREACHABLE if they are not."""
        waiting = Mark(0, 0)
        for table, key, message in messages:
            channel = self.channels.get(table)
            value = raw.encode(message, channel.schema_id)
            if message.kind == "gap" and not key:
                send_everywhere(self.sender, channel, value, waiting, self._wait)
                continue
            waiting.outstanding += 1
            while not self.sender.send(channel.topic, key, value, waiting):
                self._wait()
        self.sender.flush(_SECONDS)
        self.sender.poll(0)
        if waiting.outstanding:
            raise CdcError(
                Code.KAFKA_UNREACHABLE,
                f"Kafka has not acknowledged {waiting.outstanding} messages.",
                "The mutation stays put aside: try again when the brokers are well. What comes twice does no harm.",
            )

    def settle(self, entry: Quarantined) -> None:
        """Tell those who were told of the gap that nothing is missing from there any more."""
        tables = {table.id: table for table in self.schema.current()}
        self.send([void_gap(tables[table], key, entry.origin) for table, key in entry.gaps if table in tables])

    def _wait(self) -> None:
        self.sender.poll(0.1)


@contextmanager
def _connected(settings: Settings) -> Iterator[_Connection]:
    """With a copy of the schema history: the publisher that may be running is the one that writes it."""
    own = settings.publisher
    with (
        connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client,
        tempfile.TemporaryDirectory(prefix="cassandra-publisher-") as scratch,
    ):
        history = Path(scratch) / "schema.json"
        if (own.state_directory / history.name).exists():
            shutil.copy(own.state_directory / history.name, history)
        schema = Schema(history, client.rows, (settings.filler.keyspace, settings.filler.table), selection_of(own))
        schema.load()
        schema.refresh()
        sender = Sender(settings.kafka)
        channels = make_channels(settings, read_node(client).cluster, sender)
        channels.start()
        yield _Connection(schema, channels, sender)
