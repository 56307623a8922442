"""The SSTables that a snapshot has linked: takes a set of them, watches the disk, and gives them up."""

from __future__ import annotations

from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.files.sstables import read_statistics
from cassandra_storage.files.table_sstables import table_files
from publisher.snapshot.connections import node
from publisher.snapshot.connections.disk import MORE_PERCENT, DiskSpace, LowDiskError, linked_only_here

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.files.sstables import SSTableFile
    from publisher.settings import Settings
    from publisher.snapshot.connections.link import Link
    from publisher.snapshot.connections.nodetool import Nodetool
    from publisher.snapshot.state.current_record import CurrentRecord
    from publisher.snapshot.steps.tokens import OwnedTokens
    from publisher.tables.published_table import PublishedTable

log = structlog.get_logger(__name__)


class LinkedFiles:
    """The links of `nodetool snapshot`, under a tag of this snapshot. Compaction cannot free what is linked."""

    def __init__(
        self, settings: Settings, link: Link, nodetool: Nodetool, current: CurrentRecord, tokens: OwnedTokens
    ) -> None:
        self._settings = settings
        self._link = link
        self._nodetool = nodetool
        self._current = current
        self._tokens = tokens
        self._folders: list[Path] = []
        self._files: list[SSTableFile] = []  # that are linked now
        self._disk: DiskSpace | None = None

    def take(self, table: PublishedTable) -> None:
        """Take a set of files. If it replaces an older set, the place reached stays reached: later writes are in the
        log.
        """
        record = self._current.record
        if record.portion.repair is not None:
            self._tokens.check_unmoved()
            if not any(self._current.record.replicas):
                self._current.save(phase="sending", sending_at=time(), problem="")  # nothing of it is on this node
                return
        self._nodetool.clear_snapshot(record.keyspace, record.tag)
        self.wait_for_disk()
        truncated_at = self._link.truncated_at(table)
        self._nodetool.take_snapshot(record.keyspace, record.table, record.tag)
        now = time()
        files = self.list(table, is_new=True)
        stats = [read_statistics(file).stats for file in files]
        bounds = [file_stats.commit_log_upper_bound for file_stats in stats]
        flushed_to = node.last_flush(bounds, node.newest_segment(self._settings.node))
        own_flushed_to = record.own_flushed_to  # what is sent already does not have what came since
        if record.place is None:
            own_flushed_to = node.own_flush(stats, self._link.node.host_id)
        size = sum(file.data_path.stat().st_size for file in files)
        self._current.save(
            phase="taken",
            now=int(now),
            flushed_at=now,
            flushed_to=tuple(flushed_to),
            own_flushed_to=own_flushed_to,
            truncated_at=truncated_at,
            file_bytes=size,
            until=self._tokens.part_end(size, self._settings.publisher.snapshot_part_gib * (1 << 30)),
            problem="",
        )
        log.info("a snapshot has its files", table=record.name, files=len(files), bytes=size, flushed_to=flushed_to)

    def list(self, table: PublishedTable, *, is_new: bool) -> list[SSTableFile]:
        """Return the linked files, and watch the disk from now on. FileNotFoundError if there are none, unless they are
        new: the table has no SSTable then.
        """
        self._space()
        self._files = []
        try:
            self._files = table_files(self._folders, table.table, self._current.record.tag)
        except FileNotFoundError:
            if not is_new:
                raise
        self._link.orders.while_held = self.check_disk
        return self._files

    def release(self, problem: str = "", **changes: object) -> None:
        """Remove the links; the sending goes on at its place with new ones."""
        self._link.orders.while_held = None
        self._nodetool.clear_snapshot(self._current.record.keyspace, self._current.record.tag)
        self._current.save(phase="announced", pinned_bytes=0, pace=1.0, problem=problem, **changes)

    def wait_for_disk(self, more: float = 0.0) -> None:
        """Wait until there is room for links, and `more` percent more."""
        while problem := self._space().shortage(more):
            more = MORE_PERCENT
            self._current.check_time()
            self._current.set_problem(problem)
            self._link.pause()

    def check_disk(self) -> None:
        """Raise LowDiskError if the links must be removed."""
        if self._space().is_due():
            with suppress(FileNotFoundError):  # removed by hand: the next reader of these files reports it
                pinned = linked_only_here(self._files)
                self._current.save(pinned_bytes=pinned, changed_at=self._current.record.changed_at)
            if shortage := self._space().shortage():
                raise LowDiskError(shortage)

    def _space(self) -> DiskSpace:
        if self._disk is None:
            self._folders = node.data_directories(self._link.client, self._settings.publisher)
            self._disk = DiskSpace(self._folders, self._settings.publisher.snapshot_min_free_percent)
        return self._disk
