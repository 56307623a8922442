"""`cassandra-publisher observe`: what would be published, counted; nothing is sent, deleted or remembered."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from cassandra_storage.errors import FormatError
from cdc_program.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_program.metrics import as_size, as_time
from cdc_program.node_sizes import node_sizes
from publisher import cdc_raw
from publisher.inflight import Mark
from publisher.messages import Origin, raw_messages
from publisher.position import Positions
from publisher.progress import Every
from publisher.schema import Schema
from publisher.selection import selection_of
from publisher.space import SpaceWatch
from publisher.status_collector import segment_sizes, unflushed
from publisher.tail import Tails

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.commitlog import CommitLogEntry
    from cdc_program.settings import Settings
    from publisher.space import Space
    from publisher.tail import SegmentTail

SAY_SECONDS = 10.0
LOOK_SECONDS = 0.5


def observe(settings: Settings, seconds: float | None, say: Callable[[str], None]) -> None:
    """Until interrupted, or for so long. CdcError as the publisher's start."""
    own = settings.publisher
    with (
        connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client,
        tempfile.TemporaryDirectory(prefix="cassandra-publisher-") as scratch,
    ):
        node, told = read_node(client), live_settings(client)
        check_cdc_enabled(told)
        schema = Schema(
            Path(scratch) / "schema.json",
            client.rows,
            (settings.filler.keyspace, settings.filler.table),
            selection_of(own),
        )
        positions = Positions(Path(scratch) / "position.json", node.host_id)
        folder = settings.node.cdc_raw_directory
        sizes = node_sizes(told, settings.node)
        tails = Tails(folder, positions, cdc_raw.open_codecs(own, folder), own.max_segment_mib << 20)
        observer = Observer(schema, tails, positions)
        watch = SpaceWatch(sizes.cdc_total, sizes.segment)
        is_due, end = Every(SAY_SECONDS, monotonic()), None if seconds is None else monotonic() + seconds
        while end is None or monotonic() < end:
            schema.refresh()
            observer.read()
            now = monotonic()
            filling = watch.look(now, segment_sizes(folder, unflushed(node, settings.node), sizes.segment))
            if is_due.is_due(now):
                say(observer.report(filling))
            sleep(LOOK_SECONDS)
        say(observer.report(filling))


class Observer:
    """Counts from the beginning of what is in the folder."""

    def __init__(self, schema: Schema, tails: Tails, positions: Positions) -> None:
        self._schema = schema
        self._tails = tails
        self._positions = positions
        self._mutations = 0
        self._unreadable = 0
        self._rows: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def read(self) -> None:
        """What is durable and has not been read."""
        for tail in self._tails.poll():
            for entry in tail.entries():
                self._count(tail, entry)
            if tail.is_at_end:
                self._positions.move([Mark(tail.file.id, tail.position, is_end=True)])

    def _count(self, tail: SegmentTail, entry: CommitLogEntry) -> None:
        origin = Origin(bytes(16), tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position)
        self._mutations += 1
        try:
            outcome = raw_messages(entry.mutation, origin, self._schema)
        except FormatError:
            self._unreadable += 1
            return
        for table, key, message in outcome.messages:
            name = table.table.qualified_name
            self._rows[name] += 1
            self._bytes[name] += len(key) + len(message.update)

    def report(self, space: Space) -> str:
        """Some lines, the largest table first."""
        read = f"{self._mutations:,} mutations, {self._unreadable:,} that the schema of now cannot read"
        filled = f"cdc_raw {as_size(space.used)} of {as_size(space.full_at)}, filled by {as_size(space.arriving)}/s"
        full = f"full in {as_time(space.seconds_to_full, 'no time in sight')}"
        tables = (
            f"  {name:<40} {rows:>14,} rows {as_size(self._bytes[name]):>14}" for name, rows in self._rows.most_common()
        )
        return "\n".join([f"{read}; {filled}, {full}", *tables])
