"""The steps of a table's snapshot on this node, in order. Each is repeated after a crash if its end was not recorded.

1. `cdc = true` is in this node's schema: what is written from then on is in the log.
2. A begin is acknowledged in every raw partition: purging of this table waits from then on.
3. nodetool snapshot flushes the table and links its SSTables, under a tag of this snapshot.
4. The log is published and acknowledged up to that flush: no write before it loses its event to a row image.
5. The merged partitions are sent; what is acknowledged is recorded about once a second.
6. An end is acknowledged in every raw partition, and the links are removed.

For a large table, steps 3 to 5 are done part by part (tokens), each with its own links. If the disk runs short of
space, the links are removed (linked_files), and the steps are repeated from the place that was reached.

A repair has the same steps, but its begins and ends are resets and ends of resets of the Cassandra partitions that it
replaces, and it ends in time or not at all.
"""

from __future__ import annotations

from time import time, time_ns
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables
from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import datacenter_hosts
from cdc_common.program.pace import Pace
from publisher.snapshot.connections import node
from publisher.snapshot.connections.backlog import open_backlog
from publisher.snapshot.connections.busy import open_busy_node
from publisher.snapshot.connections.disk import MORE_PERCENT, LowDiskError
from publisher.snapshot.rows.merged_table import MergedTable
from publisher.snapshot.rows.messages import RowImages
from publisher.snapshot.rows.output import RawTopicOutput, Reports, Throttle
from publisher.snapshot.rows.sending import PartitionSender
from publisher.snapshot.state.current_record import CurrentRecord, TooLateError
from publisher.snapshot.steps.announcements import Announcements
from publisher.snapshot.steps.linked_files import LinkedFiles
from publisher.snapshot.steps.tokens import OwnedTokens, TokensMovedError

if TYPE_CHECKING:
    from cassandra_storage.files.sstables import SSTableFile
    from cdc_common.messages.snapshots import HostState
    from publisher.settings import Settings
    from publisher.snapshot.connections.link import Link
    from publisher.snapshot.connections.nodetool import Nodetool
    from publisher.snapshot.state.records import Record, Records
    from publisher.tables.published_table import PublishedTable

RECORD_SECONDS = 1.0

log = structlog.get_logger(__name__)


class SnapshotRun:
    """One table's snapshot. CdcError for what may be different at the next try, such as a server that is away."""

    def __init__(self, settings: Settings, link: Link, nodetool: Nodetool, records: Records, record: Record) -> None:
        self._settings = settings
        self._link = link
        self._nodetool = nodetool
        self._current = CurrentRecord(records, record)
        self._tokens = OwnedTokens(link, nodetool, self._current)
        self._files = LinkedFiles(settings, link, nodetool, self._current, self._tokens)
        self._announcements = Announcements(settings, link, self._current)

    @property
    def record(self) -> Record:
        """The newest version of the record."""
        return self._current.record

    def run(self) -> None:
        """Run the snapshot until it has ended, or give it up if its SSTables cannot be read."""
        try:
            table = self._link.find_table(self.record.table_id)
            self._current.check_time()
            if self.record.phase == "requested":
                self._announce(table)
            while not self._has_sent_all(table):
                pass
            self._finish(table, "ended")
        except (DamagedTableError, FormatError, TooLateError, TokensMovedError) as error:
            self.give_up(str(error))
        except OSError as error:
            raise CdcError(
                Code.CONFIG_INVALID,
                f"The SSTables of {self.record.name} cannot be read: {error}.",
                "Let the publisher's user read the node's data directories; the snapshot is tried again.",
            ) from error
        except CdcError as error:
            if error.code is not Code.TABLE_NOT_PUBLISHED:
                raise
            self.give_up(f"{error.problem} {error.fix}")

    def pause(self) -> None:
        """Release the files: nothing is linked while the snapshot is paused."""
        if self.record.phase in {"taken", "sending"}:
            self._files.release()

    def give_up(self, reason: str) -> None:
        """End the snapshot on this host: no other host waits for it any more, and rows that it had not sent stay
        missing.

        Other hosts' begins say that it takes part, whether it has begun or not.
        """
        log.error("a snapshot is given up", code=Code.SNAPSHOT_GIVEN_UP.text, table=self.record.name, reason=reason)
        table = self._link.schema.find_known(bytes.fromhex(self.record.table_id))
        is_waited = self.record.may_be_begun or self.record.phase != "requested" or len(self.record.hosts) > 1
        if table is None or not is_waited:
            self._end("given_up", problem=reason)
        else:
            self._finish(table, "given_up", problem=reason)

    def _announce(self, table: PublishedTable) -> None:
        while not self._link.orders.published().clock:
            self._current.set_problem("the publisher has not yet published any of this node's log")
        hosts = self.record.hosts or tuple(datacenter_hosts(self._link.client))
        self._current.save(hosts=hosts, may_be_begun=True)
        self._announcements.send(table, "running")
        self._current.save(phase="announced", problem="")
        log.info("a snapshot begins", table=self.record.name, snapshot=str(self.record.snapshot), hosts=len(hosts))

    def _has_sent_all(self, table: PublishedTable) -> bool:
        """Send one set of files; return whether no other set is needed."""
        try:
            if self.record.phase == "announced":
                self._files.take(table)
            if self.record.phase == "taken":
                self._wait_for_log()
            self._send_rows(table)
        except LowDiskError as error:
            log.warning("a snapshot gives up its files", table=self.record.name, reason=str(error))
            self._files.release(str(error))
            self._files.wait_for_disk(MORE_PERCENT)
            return False
        if self.record.until is None:
            return True
        log.info("a part of a snapshot is sent", table=self.record.name, up_to_token=self.record.until)
        self._files.release(done_to=self.record.until)
        return False

    def _wait_for_log(self) -> None:
        """Kafka has acknowledged the log up to the flush; or, of a node that has written nothing since and begun a new
        segment, all that was durable when the flush was long over.
        """
        record = self.record
        durable_at = record.flushed_at + node.sync_seconds(self._link.client)
        is_read_when_durable = not self._link.node.release.startswith("3.")
        while True:
            published = self._link.orders.published()
            is_idle = is_read_when_durable and published.clock > durable_at
            if published.up_to >= record.flushed_to or is_idle:
                break
            self._current.check_time()
            self._files.check_disk()
            self._current.set_problem(
                f"the log is published up to {published.up_to}, and the flush was at {record.flushed_to}"
            )
        reorder_until = time() + self._settings.materializer.reorder_seconds
        while time() < reorder_until:
            self._link.pause()
            self._files.check_disk()
        self._current.save(phase="sending", problem="", sending_at=self.record.sending_at or time())

    def _send_rows(self, table: PublishedTable) -> None:
        files = self._find_files(table)
        table = self._link.find_table(self.record.table_id)  # with all columns of these files
        ranges = self._tokens.selected()
        self._tokens.check_unmoved()
        of_files = self._tokens.of_files(ranges)
        self._current.save(started=max(time_ns() // 1000, self.record.started + 1), problem="")
        record, own = self.record, self._settings.publisher
        origin = self._announcements.origin(record.started)
        raw_topic = self._link.raw_topics.open(table)
        busy = open_busy_node(own, self._link, self._nodetool)
        backlog = open_backlog(self._settings, raw_topic)
        throttle = Throttle(self._link, self._current, self._files.check_disk, backlog, busy)
        output = RawTopicOutput(self._link, raw_topic, throttle)
        pace = Pace(own.snapshot_max_mib_per_second * (1 << 20), self._link.serve, busy.measure_share)
        report = Reports(self._current, ranges, RECORD_SECONDS)
        images = RowImages(table, origin)
        sender = PartitionSender(images, output, pace, report.add, record.place)
        sstables = TableSSTables(table.table, files)
        only_repaired = node.purges_only_repaired(self._link.client, table.table)
        purger = sstables.purger(record.now, only_repaired=only_repaired)
        try:
            MergedTable(sstables, purger, of_files).send(sender, images, raw_topic, origin)
        finally:
            report.save(sender.progress)

    def _find_files(self, table: PublishedTable) -> list[SSTableFile]:
        """Return the linked files; new ones if the links were removed."""
        try:
            return self._files.list(table, is_new=not self.record.file_bytes)
        except FileNotFoundError:
            self._current.save(phase="announced", problem="its files were removed: it takes new ones")
            self._files.take(table)
            self._wait_for_log()
            return self._files.list(table, is_new=True)

    def _finish(self, table: PublishedTable, state: HostState, problem: str = "") -> None:
        self._link.orders.while_held = None
        self._announcements.send(table, state)
        self._end(state, problem)

    def _end(self, phase: HostState, problem: str = "") -> None:
        """The record comes last: if the links cannot be removed now, this is tried again."""
        record = self.record
        if record.phase != "requested":
            self._nodetool.clear_snapshot(record.keyspace, record.tag)
        done = 1.0 if phase == "ended" else record.done
        self._announcements.tell_hosts(phase)  # the record may be replaced at once
        self._current.save(phase=phase, problem=problem, done=done, pinned_bytes=0, pace=1.0)
        log.info(
            "a snapshot has ended" if phase == "ended" else "a snapshot was given up",
            table=record.name,
            rows=record.rows,
            bytes=record.bytes,
            seconds=round(time() - (record.sending_at or time()), 1),
        )
