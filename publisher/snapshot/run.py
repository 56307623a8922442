"""The steps of a table's snapshot on this node, in order. Each is repeated after a crash if its end was not recorded.

1. `cdc = true` is in this node's schema: what is written from then on is in the log.
2. A begin is acknowledged in every raw partition: purging of this table waits from then on.
3. nodetool snapshot flushes the table and links its SSTables, under a tag of this snapshot.
4. The log is published and acknowledged up to that flush: no write before it loses its event to a row image.
5. The merged partitions are sent; what is acknowledged is recorded about once a second.
6. An end is acknowledged in every raw partition, and the links are removed.

A repair has the same steps, but its begins and ends are resets and ends of resets of the Cassandra partitions that it
replaces, and it ends in time or not at all.
"""

from __future__ import annotations

from functools import partial
from time import monotonic, sleep, time, time_ns
from typing import TYPE_CHECKING

import structlog

from cassandra_files.sstables import read_statistics
from cassandra_files.table_sstables import DamagedTableError, TableSSTables, table_files
from cassandra_storage.errors import FormatError
from cassandra_storage.murmur3 import decorated_token
from cassandra_storage.token_ranges import spans
from cdc_messages.repairs import RepairStep
from cdc_program.errors import CdcError, Code
from cdc_program.snapshot_rows import datacenter_hosts
from publisher.interval import Interval
from publisher.snapshot import node
from publisher.snapshot.backlog import open_backlog
from publisher.snapshot.merged_table import MergedTable
from publisher.snapshot.sending import Pace, PartitionSender, share_done
from publisher.snapshot_messages import RowImages, SnapshotOrigin, make_repair_steps, make_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_files.sstables import SSTableFile
    from cassandra_storage.token_ranges import TokenRange
    from cdc_messages.snapshots import HostState
    from cdc_program.settings import Settings
    from publisher.raw_topics import RawTopic
    from publisher.schema import PublishedTable
    from publisher.snapshot.link import Link
    from publisher.snapshot.nodetool import Nodetool
    from publisher.snapshot.records import Phase, Record, Records
    from publisher.snapshot.sending import Progress

RECORD_SECONDS = 1.0
_WAIT_SECONDS = 0.2

log = structlog.get_logger(__name__)


class TooLateError(Exception):
    """A repair whose time is over."""


class SnapshotRun:
    """One table's snapshot. CdcError for what may be different at the next try, such as a server that is away."""

    def __init__(self, settings: Settings, link: Link, nodetool: Nodetool, records: Records, record: Record) -> None:
        self._settings = settings
        self._link = link
        self._nodetool = nodetool
        self._records = records
        self.record = record
        self._sent: list[TokenRange] = []  # by this process

    def run(self) -> None:
        """Until it has ended, or is given up because its SSTables cannot be read."""
        try:
            table = self._link.find_table(self.record.table_id)
            self._check_time()
            if self.record.phase == "requested":
                self._announce(table)
            if self.record.phase == "announced":
                self._take_files(table)
            if self.record.phase == "taken":
                self._wait_for_log()
            if self.record.phase == "sending":
                self._send_rows(table)
                self._finish(table, "ended")
        except (DamagedTableError, FormatError, TooLateError) as error:
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

    def give_up(self, reason: str) -> None:
        """This host is no longer waited for: what it had not sent stays missing."""
        log.error("a snapshot is given up", code=Code.SNAPSHOT_GIVEN_UP.text, table=self.record.name, reason=reason)
        table = self._link.schema.published.get(bytes.fromhex(self.record.table_id))
        is_begun = self.record.may_be_begun or self.record.phase != "requested"
        if table is None or not is_begun:
            self._end("given_up", problem=reason)
        else:
            self._finish(table, "given_up", problem=reason)

    def _save(self, **changes: object) -> None:
        self.record = self.record.moved(**changes)
        self._records.write(self.record)

    def _announce(self, table: PublishedTable) -> None:
        while not self._link.orders.published().clock:
            self.set_problem("the publisher has not yet published any of this node's log")
        hosts = self.record.hosts or tuple(datacenter_hosts(self._link.client))
        self._save(hosts=hosts, may_be_begun=True)
        self._send_step(table, "running")
        self._save(phase="announced", problem="")
        log.info("a snapshot begins", table=self.record.name, snapshot=str(self.record.snapshot), hosts=len(hosts))

    def _send_step(self, table: PublishedTable, state: HostState) -> None:
        record = self.record
        hosts, repair = [host.bytes for host in record.hosts], record.portion.repair
        origin = self._origin(time_ns() // 1000)
        if repair is None:
            self._link.send_to_all(make_step(table, origin, hosts, state))
        else:
            step = RepairStep(record.snapshot, tuple(hosts), repair.until_ms, state)
            steps = [(key, step._replace(flushed_to=self._flushed_to(key))) for key in repair.keys]
            self._link.send_and_wait(table, make_repair_steps(table, origin, steps))

    def _flushed_to(self, key: bytes) -> tuple[int, int]:
        """Of a Cassandra partition that this node does not own, it has sent nothing."""
        token = decorated_token(key)
        is_sent = any(first <= token <= last for first, last in spans(self._sent))
        return self.record.own_flushed_to if is_sent else (0, 0)

    def _origin(self, started: int) -> SnapshotOrigin:
        record = self.record
        return SnapshotOrigin(
            record.snapshot,
            self._link.node.host_id.bytes,
            started,
            truncated_at=record.truncated_at,
            is_repair=record.portion.repair is not None,
        )

    def _check_time(self) -> None:
        """TooLateError if this repair is no longer awaited."""
        repair = self.record.portion.repair
        if repair is not None and time() * 1000 > repair.until_ms:
            raise TooLateError("its time is over")

    def _take_files(self, table: PublishedTable) -> None:
        """With files that are newer, a place that was reached stays reached: the log has what came since."""
        record = self.record
        if record.portion.repair is not None and not self._ranges():
            self._save(phase="sending", sending_at=time(), problem="")  # nothing of it is on this node
            return
        truncated_at = self._link.truncated_at(table)
        self._nodetool.clear_snapshot(record.keyspace, record.tag)
        self._nodetool.take_snapshot(record.keyspace, record.table, record.tag)
        now = time()
        files = self._files(table, is_new=True)
        stats = [read_statistics(file).stats for file in files]
        bounds = [each.commit_log_upper_bound for each in stats]
        flushed_to = node.last_flush(bounds, node.newest_segment(self._settings.node))
        own_flushed_to = record.own_flushed_to  # what is sent already does not have what came since
        if record.place is None:
            own_flushed_to = node.own_flush(stats, self._link.node.host_id)
        size = sum(file.data_path.stat().st_size for file in files)
        self._save(
            phase="taken",
            now=int(now),
            flushed_at=now,
            flushed_to=tuple(flushed_to),
            own_flushed_to=own_flushed_to,
            truncated_at=truncated_at,
            file_bytes=size,
            problem="",
        )
        log.info("a snapshot has its files", table=record.name, files=len(files), bytes=size, flushed_to=flushed_to)

    def _files(self, table: PublishedTable, *, is_new: bool) -> list[SSTableFile]:
        folders = node.data_directories(self._link.client, self._settings.publisher)
        try:
            return table_files(folders, table.table, self.record.tag)
        except FileNotFoundError:
            if is_new:
                return []  # a table without an SSTable
            raise

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
            self._check_time()
            self.set_problem(f"the log is published up to {published.up_to}, and the flush was at {record.flushed_to}")
        reorder_until = time() + self._settings.materializer.reorder_seconds
        while time() < reorder_until:
            self._pause()
        self._save(phase="sending", problem="", sending_at=time())

    def set_problem(self, problem: str) -> None:
        """What it waits for; nothing if it goes on."""
        if problem != self.record.problem:
            self._save(problem=problem)

    def _pause(self) -> None:
        self._link.serve()
        sleep(_WAIT_SECONDS)

    def _send_rows(self, table: PublishedTable) -> None:
        try:
            files = self._files(table, is_new=not self.record.file_bytes)
        except FileNotFoundError:
            self._save(phase="announced", problem="its files were removed: it takes new ones")
            self._take_files(table)
            self._wait_for_log()
            files = self._files(table, is_new=True)
        ranges = self._sent = self._ranges()
        self._save(started=max(time_ns() // 1000, self.record.started + 1), problem="")
        record = self.record
        origin = self._origin(record.started)
        raw_topic = self._link.raw_topics.open(table)
        output = _Output(self, raw_topic)
        pace = Pace(self._settings.publisher.snapshot_max_mib_per_second * (1 << 20), self._link.serve)
        report = _Reports(self, ranges)
        images = RowImages(table, origin)
        sender = PartitionSender(images, output, pace, report.add, self.record.place)
        sstables = TableSSTables(table.table, files)
        only_repaired = node.purges_only_repaired(self._link.client, table.table)
        purger = sstables.purger(self.record.now, only_repaired=only_repaired)
        try:
            MergedTable(sstables, purger, ranges).send(sender, images, raw_topic, origin)
        finally:
            report.save(sender.progress)

    def _ranges(self) -> list[TokenRange]:
        """What this node owns of the snapshot's portion."""
        portion, address = self.record.portion, node.broadcast_address(self._link.client)
        owned = self._nodetool.owned_ranges(self.record.keyspace, address, only_primary=portion.is_primary)
        return portion.of(owned)

    def _finish(self, table: PublishedTable, state: HostState, problem: str = "") -> None:
        self._send_step(table, state)
        self._end("ended" if state == "ended" else "given_up", problem)

    def _end(self, phase: Phase, problem: str = "") -> None:
        """The record comes last: if the links cannot be removed now, this is tried again."""
        record = self.record
        if record.phase != "requested":
            self._nodetool.clear_snapshot(record.keyspace, record.tag)
        self._save(phase=phase, problem=problem, done=1.0 if phase == "ended" else record.done)
        log.info(
            "a snapshot has ended" if phase == "ended" else "a snapshot was given up",
            table=record.name,
            rows=record.rows,
            bytes=record.bytes,
            seconds=round(time() - (record.sending_at or time()), 1),
        )


class _Output:
    """The raw topic as the place where units go (sending.Output)."""

    def __init__(self, run: SnapshotRun, raw_topic: RawTopic) -> None:
        settings, link = run._settings, run._link  # noqa: SLF001 - its own part
        self._run = run
        self._link = link
        self.send = partial(link.send, raw_topic)
        self.send_batch = partial(link.send_batch, (raw_topic.name,))
        self.wait = link.wait
        self._backlog = open_backlog(settings, raw_topic)

    def poll(self) -> None:
        """Also wait while the materializer is too far from the end."""
        self._link.sender.poll(0)
        self._link.serve()
        record = self._run.record
        size = record.bytes / record.rows if record.rows else 0.0
        while reason := self._backlog.look(size):
            self._run.set_problem(reason)
            self.wait()
        self._run.set_problem("")


class _Reports:
    """Records the progress once in a while, beside what was sent before the snapshot resumed."""

    def __init__(self, run: SnapshotRun, ranges: Sequence[TokenRange]) -> None:
        self._run = run
        self._before = run.record
        self._owned = spans(ranges)
        self._interval = Interval(RECORD_SECONDS, monotonic())

    def add(self, progress: Progress) -> None:
        if self._interval.is_due(monotonic()):
            self.save(progress)

    def save(self, progress: Progress) -> None:
        before, place = self._before, progress.place
        self._run._save(  # noqa: SLF001 - its own part
            place=place,
            rows=before.rows + progress.rows,
            bytes=before.bytes + progress.bytes,
            partitions=before.partitions + progress.partitions,
            done=share_done(self._owned, None if place is None else place.token),
        )
