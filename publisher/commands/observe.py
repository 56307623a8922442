"""`cassandra-publisher observe`: counts what would be published; sends, deletes and stores nothing."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cdc_common.clients.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_common.node.sizes import node_sizes
from cdc_common.program.metrics import as_size, as_time
from publisher.inflight import PendingPosition
from publisher.interval import Interval
from publisher.log import cdc_raw
from publisher.log.position import Positions
from publisher.log.space import SpaceWatch
from publisher.log.tail import SegmentTails
from publisher.monitoring.status_collector import segment_sizes, unflushed_folder
from publisher.mutations.messages import Origin, split_into_messages
from publisher.tables.node_schema import NodeSchema
from publisher.tables.selection import selection_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.commitlog.segment import CommitLogEntry
    from publisher.log.space import Space
    from publisher.log.tail import SegmentTail
    from publisher.settings import Settings

REPORT_SECONDS = 10.0
POLL_SECONDS = 0.5


def observe_log(settings: Settings, seconds: float | None, write_line: Callable[[str], None]) -> None:
    """Observe for so many seconds, or until interrupted. CdcError as at the publisher's start."""
    own = settings.publisher
    with (
        connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client,
        tempfile.TemporaryDirectory(prefix="cassandra-publisher-") as scratch,
    ):
        node, reported = read_node(client), live_settings(client)
        check_cdc_enabled(reported)
        filler = settings.filler.keyspace, settings.filler.table
        schema = NodeSchema(Path(scratch) / "schema.json", client.rows, filler, selection_from(own))
        positions = Positions(Path(scratch) / "position.json", node.host_id)
        folder = settings.node.cdc_raw_directory
        sizes = node_sizes(reported, settings.node)
        tails = SegmentTails(folder, positions, cdc_raw.open_codecs(own, folder), own.max_segment_mib << 20)
        observer = Observer(schema, tails, positions)
        watch = SpaceWatch(sizes.cdc_total, sizes.segment)
        interval, end = Interval(REPORT_SECONDS, monotonic()), None if seconds is None else monotonic() + seconds
        while True:
            schema.refresh()
            observer.read_new()
            now = monotonic()
            space = watch.update(now, segment_sizes(folder, unflushed_folder(node, settings.node), sizes.segment))
            is_over = end is not None and now >= end
            if interval.is_due(now) or is_over:
                write_line(observer.report(space, now))
            if is_over:
                return
            sleep(POLL_SECONDS if end is None else min(POLL_SECONDS, max(0.0, end - now)))


class Observer:
    """Counts all that is in the folder, from the oldest segment on, and how fast it grows."""

    def __init__(self, schema: NodeSchema, tails: SegmentTails, positions: Positions) -> None:
        self._schema = schema
        self._tails = tails
        self._positions = positions
        self._mutations = 0
        self._unreadable = 0
        self._rows: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()  # the rows of the last report
        self._reported_at: float | None = None

    def read_new(self) -> None:
        """Read what is durable and was not read yet."""
        for tail in self._tails.poll():
            for entry in tail.entries():
                self._count(tail, entry)
            if tail.is_at_end:
                self._positions.move([PendingPosition(tail.file.id, tail.position, is_end=True)])

    def _count(self, tail: SegmentTail, entry: CommitLogEntry) -> None:
        origin = Origin(bytes(16), tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position)
        self._mutations += 1
        try:
            decoded = split_into_messages(entry.mutation, origin, self._schema)
        except FormatError:
            self._unreadable += 1
            return
        for table, key, message in decoded.messages:
            name = table.table.qualified_name
            self._rows[name] += 1
            self._bytes[name] += len(key) + len(message.update)

    def report(self, space: Space, now: float) -> str:
        """A line for each table, the largest first: the total of what cdc_raw held and got, and the rate since the last
        report. `now`: of the monotonic clock.
        """
        read = f"{self._mutations:,} mutations in all, {self._unreadable:,} that the current schema cannot decode"
        filled = f"cdc_raw {as_size(space.used)} of {as_size(space.full_at)}, filled by {as_size(space.arriving)}/s"
        full = f"full in {as_time(space.seconds_to_full, 'not in sight')}"
        tables = [
            f"  {name:<40} {rows:>14,} rows {as_size(self._bytes[name]):>14}{self._rate(name, now)}"
            for name, rows in self._rows.most_common()
        ]
        self._reported, self._reported_at = self._rows.copy(), now
        return "\n".join([f"{read}; {filled}, {full}", *tables])

    def _rate(self, name: str, now: float) -> str:
        """The first report has none: it counts what was written before."""
        if self._reported_at is None or now <= self._reported_at:
            return ""
        return f" {(self._rows[name] - self._reported[name]) / (now - self._reported_at):>12,.1f} rows/s"
