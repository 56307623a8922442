"""The steps of a table's snapshot on this node, in order. Each is repeated after a crash if its end was not recorded.

1. `cdc = true` is in this node's schema: what is written from then on is in the log.
2. A begin is acknowledged in every raw partition: purging of this table waits from then on.
3. nodetool snapshot flushes the table and links its SSTables, under a tag of this snapshot.
4. The log is published and acknowledged up to that flush: no write before it loses its event to a row image.
5. The merged partitions are sent; what is acknowledged is recorded about once a second.
6. An end is acknowledged in every raw partition, and the links are removed.

For a large table, steps 3 to 5 are done part by part (parts), each with its own links. If the disk runs short of space,
the links are removed (disk), and the steps are repeated from the place that was reached.

A repair has the same steps, but its begins and ends are resets and ends of resets of the Cassandra partitions that it
replaces, and it ends in time or not at all.
"""

from __future__ import annotations

from contextlib import suppress
from time import sleep, time, time_ns
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.files.sstables import read_statistics
from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables, table_files
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span, spans
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.repairs import RepairStep
from cdc_common.node.snapshot_rows import SnapshotRows, datacenter_hosts
from cdc_common.program.pace import Pace
from publisher.snapshot import node
from publisher.snapshot.backlog import open_backlog
from publisher.snapshot.busy import open_busy_node
from publisher.snapshot.cluster import tell_hosts
from publisher.snapshot.disk import MORE_PERCENT, DiskSpace, LowDiskError, linked_only_here
from publisher.snapshot.merged_table import MergedTable
from publisher.snapshot.messages import RowImages, SnapshotOrigin, make_repair_steps, make_step
from publisher.snapshot.output import RawTopicOutput, Reports
from publisher.snapshot.parts import part_end
from publisher.snapshot.portion import Portion
from publisher.snapshot.sending import PartitionSender

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from cdc_common.messages.snapshots import HostState
    from publisher.settings import Settings
    from publisher.snapshot.link import Link
    from publisher.snapshot.nodetool import Nodetool
    from publisher.snapshot.records import Record, Records
    from publisher.tables.published_table import PublishedTable

RECORD_SECONDS = 1.0
_WAIT_SECONDS = 0.2

log = structlog.get_logger(__name__)


class TooLateError(Exception):
    """A repair whose time is over."""


class TokensMovedError(Exception):
    """The node has other Cassandra partitions of a repair than when its files were taken."""


class SnapshotRun:
    """One table's snapshot. CdcError for what may be different at the next try, such as a server that is away."""

    def __init__(self, settings: Settings, link: Link, nodetool: Nodetool, records: Records, record: Record) -> None:
        self._settings = settings
        self._link = link
        self._nodetool = nodetool
        self._records = records
        self.record = record
        self._folders: list[Path] = []
        self._files: list[SSTableFile] = []  # that are linked now
        self._disk: DiskSpace | None = None

    def run(self) -> None:
        """Run the snapshot until it has ended, or give it up if its SSTables cannot be read."""
        try:
            table = self._link.find_table(self.record.table_id)
            self._check_time()
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

    def _has_sent_all(self, table: PublishedTable) -> bool:
        """Send one set of files; return whether no other set is needed."""
        try:
            if self.record.phase == "announced":
                self._take_files(table)
            if self.record.phase == "taken":
                self._wait_for_log()
            self._send_rows(table)
        except LowDiskError as error:
            log.warning("a snapshot gives up its files", table=self.record.name, reason=str(error))
            self._release_files(str(error))
            self._wait_for_disk(MORE_PERCENT)
            return False
        if self.record.until is None:
            return True
        log.info("a part of a snapshot is sent", table=self.record.name, up_to_token=self.record.until)
        self._release_files(done_to=self.record.until)
        return False

    def pause(self) -> None:
        """Release the files: nothing is linked while the snapshot is paused."""
        if self.record.phase in {"taken", "sending"}:
            self._release_files()

    def _release_files(self, problem: str = "", **changes: object) -> None:
        """Remove the links; the sending goes on at its place with new ones."""
        self._link.orders.while_held = None
        self._nodetool.clear_snapshot(self.record.keyspace, self.record.tag)
        self.save(phase="announced", pinned_bytes=0, pace=1.0, problem=problem, **changes)

    def give_up(self, reason: str) -> None:
        """This host is no longer waited for: what it had not sent stays missing.

        Other hosts' begins say that it takes part, whether it has begun or not.
        """
        log.error("a snapshot is given up", code=Code.SNAPSHOT_GIVEN_UP.text, table=self.record.name, reason=reason)
        table = self._link.schema.find_known(bytes.fromhex(self.record.table_id))
        is_waited = self.record.may_be_begun or self.record.phase != "requested" or len(self.record.hosts) > 1
        if table is None or not is_waited:
            self._end("given_up", problem=reason)
        else:
            self._finish(table, "given_up", problem=reason)

    def save(self, **changes: object) -> None:
        """Change the record."""
        self.record = self.record.moved(**changes)
        self._records.write(self.record)

    def _announce(self, table: PublishedTable) -> None:
        while not self._link.orders.published().clock:
            self.set_problem("the publisher has not yet published any of this node's log")
        hosts = self.record.hosts or tuple(datacenter_hosts(self._link.client))
        self.save(hosts=hosts, may_be_begun=True)
        self._send_step(table, "running")
        self.save(phase="announced", problem="")
        log.info("a snapshot begins", table=self.record.name, snapshot=str(self.record.snapshot), hosts=len(hosts))

    def _tell_hosts(self, state: HostState) -> None:
        client = self._link.client
        rows = SnapshotRows(client.rows, client.write, self._settings.filler.keyspace)
        tell_hosts(rows, self.record, self._link.node.host_id, state)

    def _send_step(self, table: PublishedTable, state: HostState) -> None:
        if state != "ended":
            self._tell_hosts(state)  # before purging waits for all of them
        record = self.record
        hosts, repair = [host.bytes for host in record.hosts], record.portion.repair
        origin = self._origin(time_ns() // 1000)
        if repair is None:
            self._link.send_to_all(make_step(table, origin, hosts, state))
        else:
            step = RepairStep(record.snapshot, tuple(hosts), repair.until_ms, state)
            ends = zip(repair.keys, record.replicas, strict=True) if state == "ended" else ()
            counts = dict.fromkeys(repair.keys, 0) | dict(ends)
            # Of a Cassandra partition that this node does not have, it has sent nothing.
            flushed_to = {key: record.own_flushed_to if count else (0, 0) for key, count in counts.items()}
            steps = [(key, step._replace(flushed_to=flushed_to[key], replicas=count)) for key, count in counts.items()]
            self._link.send_and_wait(table, make_repair_steps(table, origin, steps))

    def _replicas_of(self, keys: Sequence[bytes]) -> tuple[int, ...]:
        """RepairStep.replicas of Cassandra partitions."""
        counts = self._nodetool.replica_counts(self.record.keyspace, node.broadcast_address(self._link.client))
        found = []
        for token in map(decorated_token, keys):
            own = (count for each, count in counts if any(first <= token <= last for first, last in spans([each])))
            found.append(next(own, 0))
        return tuple(found)

    def _check_tokens(self) -> None:
        """Note which nodes have a repair's Cassandra partitions, before the first files are taken.

        TokensMovedError if the node later has others of them: its files lack those, or it would not send them.
        """
        repair = self.record.portion.repair
        if repair is None:
            return
        found, noted = self._replicas_of(repair.keys), self.record.replicas
        if not noted:
            self.save(replicas=found)
        elif [bool(count) for count in found] != [bool(count) for count in noted]:
            raise TokensMovedError("tokens have moved to or from this node: repeat the audit")

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
        """Raise TooLateError if this repair is no longer awaited."""
        repair = self.record.portion.repair
        if repair is not None and time() * 1000 > repair.until_ms:
            raise TooLateError("its time is over")

    def _take_files(self, table: PublishedTable) -> None:
        """Take a set of files. If it replaces an older set, the place reached stays reached: later writes are in the
        log.
        """
        record = self.record
        if record.portion.repair is not None:
            self._check_tokens()
            if not any(self.record.replicas):
                self.save(phase="sending", sending_at=time(), problem="")  # nothing of it is on this node
                return
        self._nodetool.clear_snapshot(record.keyspace, record.tag)
        self._wait_for_disk()
        truncated_at = self._link.truncated_at(table)
        self._nodetool.take_snapshot(record.keyspace, record.table, record.tag)
        now = time()
        files = self._list_files(table, is_new=True)
        stats = [read_statistics(file).stats for file in files]
        bounds = [each.commit_log_upper_bound for each in stats]
        flushed_to = node.last_flush(bounds, node.newest_segment(self._settings.node))
        own_flushed_to = record.own_flushed_to  # what is sent already does not have what came since
        if record.place is None:
            own_flushed_to = node.own_flush(stats, self._link.node.host_id)
        size = sum(file.data_path.stat().st_size for file in files)
        self.save(
            phase="taken",
            now=int(now),
            flushed_at=now,
            flushed_to=tuple(flushed_to),
            own_flushed_to=own_flushed_to,
            truncated_at=truncated_at,
            file_bytes=size,
            until=self._part_end(size),
            problem="",
        )
        log.info("a snapshot has its files", table=record.name, files=len(files), bytes=size, flushed_to=flushed_to)

    def _part_end(self, file_bytes: int) -> int | None:
        """See parts.part_end."""
        part_bytes = self._settings.publisher.snapshot_part_gib * (1 << 30)
        if self.record.portion.repair is not None or not part_bytes or file_bytes <= part_bytes:
            return None
        owned, place, done_to = self._owned(), self.record.place, self.record.done_to
        sent = spans(self.record.portion.of(owned))
        if place is not None and (done_to is None or done_to < place.token):
            done_to = place.token - 1  # other keys may have that token
        return part_end(spans(owned), sent, done_to, file_bytes, part_bytes)

    def _wait_for_disk(self, more: float = 0.0) -> None:
        """Wait until there is room for links, and `more` percent more."""
        while problem := self._space().shortage(more):
            more = MORE_PERCENT
            self._check_time()
            self.set_problem(problem)
            self._wait_a_moment()

    def _space(self) -> DiskSpace:
        if self._disk is None:
            self._folders = node.data_directories(self._link.client, self._settings.publisher)
            self._disk = DiskSpace(self._folders, self._settings.publisher.snapshot_min_free_percent)
        return self._disk

    def check_disk(self) -> None:
        """Raise LowDiskError if the links must go."""
        if self._space().is_due():
            with suppress(FileNotFoundError):  # removed by hand: whoever reads them next finds out
                pinned = linked_only_here(self._files)
                self.save(pinned_bytes=pinned, changed_at=self.record.changed_at)
            if shortage := self._space().shortage():
                raise LowDiskError(shortage)

    def _list_files(self, table: PublishedTable, *, is_new: bool) -> list[SSTableFile]:
        self._space()
        self._files = []
        try:
            self._files = table_files(self._folders, table.table, self.record.tag)
        except FileNotFoundError:
            if not is_new:
                raise
            # a table without an SSTable
        self._link.orders.while_held = self.check_disk
        return self._files

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
            self.check_disk()
            self.set_problem(f"the log is published up to {published.up_to}, and the flush was at {record.flushed_to}")
        reorder_until = time() + self._settings.materializer.reorder_seconds
        while time() < reorder_until:
            self._wait_a_moment()
            self.check_disk()
        self.save(phase="sending", problem="", sending_at=self.record.sending_at or time())

    def set_problem(self, problem: str, pace: float = 1.0) -> None:
        """What it waits for, nothing if it goes on; and the share of its rate that it may use."""
        if (problem, pace) != (self.record.problem, self.record.pace):
            self.save(problem=problem, pace=pace)

    def _wait_a_moment(self) -> None:
        self._link.serve()
        sleep(_WAIT_SECONDS)

    def _send_rows(self, table: PublishedTable) -> None:
        try:
            files = self._list_files(table, is_new=not self.record.file_bytes)
        except FileNotFoundError:
            self.save(phase="announced", problem="its files were removed: it takes new ones")
            self._take_files(table)
            self._wait_for_log()
            files = self._list_files(table, is_new=True)
        table = self._link.find_table(self.record.table_id)  # with all columns of these files
        ranges = self._ranges()
        self._check_tokens()
        now_sent = self._of_these_files(ranges)
        self.save(started=max(time_ns() // 1000, self.record.started + 1), problem="")
        record, own = self.record, self._settings.publisher
        origin = self._origin(record.started)
        raw_topic = self._link.raw_topics.open(table)
        busy = open_busy_node(own, self._link, self._nodetool)
        output = RawTopicOutput(self._link, raw_topic, self, open_backlog(self._settings, raw_topic), busy)
        pace = Pace(own.snapshot_max_mib_per_second * (1 << 20), self._link.serve, busy.look)
        report = Reports(self, ranges, RECORD_SECONDS)
        images = RowImages(table, origin)
        sender = PartitionSender(images, output, pace, report.add, record.place)
        sstables = TableSSTables(table.table, files)
        only_repaired = node.purges_only_repaired(self._link.client, table.table)
        purger = sstables.purger(record.now, only_repaired=only_repaired)
        try:
            MergedTable(sstables, purger, now_sent).send(sender, images, raw_topic, origin)
        finally:
            report.save(sender.progress)

    def _ranges(self) -> list[TokenRange]:
        """What this node owns of the snapshot's portion."""
        return self.record.portion.of(self._owned())

    def _of_these_files(self, ranges: Sequence[TokenRange]) -> list[TokenRange]:
        """Return the tokens for which the present files were taken."""
        done_to, until = self.record.done_to, self.record.until
        if done_to is None and until is None:
            return list(ranges)
        first = MINIMUM if done_to is None else done_to + 1
        return Portion((Span(first, MAXIMUM if until is None else until),)).of(ranges)

    def _owned(self) -> list[TokenRange]:
        """All of which this node is a replica, or the primary one."""
        address = node.broadcast_address(self._link.client)
        only_primary = self.record.portion.is_primary
        return self._nodetool.owned_ranges(self.record.keyspace, address, only_primary=only_primary)

    def _finish(self, table: PublishedTable, state: HostState, problem: str = "") -> None:
        self._link.orders.while_held = None
        self._send_step(table, state)
        self._end(state, problem)

    def _end(self, phase: HostState, problem: str = "") -> None:
        """The record comes last: if the links cannot be removed now, this is tried again."""
        record = self.record
        if record.phase != "requested":
            self._nodetool.clear_snapshot(record.keyspace, record.tag)
        done = 1.0 if phase == "ended" else record.done
        self._tell_hosts(phase)  # the record may be replaced at once
        self.save(phase=phase, problem=problem, done=done, pinned_bytes=0, pace=1.0)
        log.info(
            "a snapshot has ended" if phase == "ended" else "a snapshot was given up",
            table=record.name,
            rows=record.rows,
            bytes=record.bytes,
            seconds=round(time() - (record.sending_at or time()), 1),
        )
