"""The shares that a worker has open: their producers, rows and files."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import structlog

from archive.fault_points import ArchivePoint
from archive.faults import ARCHIVE_FAULTS
from archive.job.plan import DEAD_LETTER_BYTES, Stream
from archive.stores.store import open_store
from archive.writer.cut import CutSettings
from archive.writer.positions import CutPosition
from archive.writer.schema_plans import SchemaPlans
from archive.writer.share_task import EventTopic, ShareParts, ShareSettings, ShareTask
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.messages.topics import partition_for
from stream_runtime.errors import trace_of
from stream_runtime.fault_points import reach
from stream_runtime.kafka import PRODUCER_DEFAULTS, Topics
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import SourcePartition
from stream_runtime.source_batch import SourceBatch

if TYPE_CHECKING:
    from collections.abc import Collection

    from archive.job.plan import ArchivePlan, Job
    from archive.writer.report import CutReport
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share, TopicShape

_logger = structlog.get_logger(__name__)


class _Open(NamedTuple):
    """A share that is open."""

    stream: Stream
    task: ShareTask
    partitions: frozenset[SourcePartition]
    """Those that are read."""


class OpenShares:
    """Opens and closes shares, and works on them. They share one consumer."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._topics = Topics(job.kafka)
        self._store = open_store(job.settings.location)
        self._registry = RegistryClient(job.registry)
        self._reader: SourceReader | None = None
        self._plans: dict[str, SchemaPlans] = {}
        self._open: dict[Share, _Open] = {}

    @property
    def shares(self) -> set[Share]:
        return set(self._open)

    def keep(self, plan: ArchivePlan, shares: Collection[Share]) -> None:
        """Close all but these, and those whose topics have changed."""
        for share, opened in list(self._open.items()):
            if share not in shares or plan.streams.get(share.stream) != opened.stream:
                self.close(share)

    def open(self, plan: ArchivePlan, share: Share) -> None:
        """Step 1 of the protocol. CdcError, KafkaException."""
        stream = plan.streams[share.stream]
        reader = self._source_reader()
        reach(ArchivePoint.SHARE_OPENING)
        own = self._job.settings
        limits = PRODUCER_DEFAULTS._replace(
            transaction_seconds=own.transaction_timeout_seconds, max_message_bytes=DEAD_LETTER_BYTES
        )
        commits = KafkaCommits(
            self._job.kafka,
            own.group_id,
            share,
            reader,
            limits,
            before_commit=ArchivePoint.CUT_OFFSETS_SENT,
            first_offset=partial(self._first_offset, stream.shape),
        )
        key = f"{stream.shape.topic_id}/{share.id}".encode()
        parts = ShareParts(
            commits,
            self._store,
            self._schema_plans(share.stream),
            EventTopic(own.events_topic, partition_for(key, plan.events)),
            own.dead_letter_topic,
            self._topics.bounds,
            _own_folder(own.spool_directory / own.group_id, share.id),
            own.buffer_bytes,
        )
        try:
            task = ShareTask(share, stream.shape, parts, self._share_settings(share.stream, stream))
        except BaseException:
            commits.close()
            raise
        for partition, offset in task.offsets.items():
            reader.add(partition, offset)
        self._open[share] = _Open(stream, task, frozenset(task.offsets))
        self._divide_memory()

    def read(self, most: int, seconds: float) -> Read:
        """Read messages of all open shares. CdcError."""
        read = self._source_reader().read(most, seconds)
        shapes = {at: opened.stream.shape for opened in self._open.values() for at in opened.partitions}
        return check_sources(read, shapes, self._topics, ARCHIVE_FAULTS)

    def take(self, share: Share, read: Read) -> int:
        """Step 2: spill what was read of a share. The number of its messages. CdcError."""
        count = 0
        task = self._open[share].task
        for partition in sorted(self._open[share].partitions & read.following.keys()):
            batch = read.records.get(partition)
            if batch is not None and not isinstance(batch, SourceBatch):
                raise TypeError("a partition was read in two parts")
            own = self._job.settings
            for part in () if batch is None else batch.parts(own.chunk_max_bytes, own.chunk_max_messages):
                count += len(part)
                task.take(partition, part, part[-1].offset + 1)
            task.take(partition, None, read.following[partition])
        return count

    def commit_due(self, share: Share) -> CutReport | None:
        """Steps 3 to 5. A share whose cut was begun by another task is closed after it, to read on from its end."""
        task = self._open[share].task
        was_retry = task.is_retry
        report = task.commit_due()
        if report is not None and was_retry:
            self.close(share)
        return report

    def partitions(self, share: Share) -> frozenset[SourcePartition]:
        """The partitions of an open share that are read."""
        return self._open[share].partitions

    def close(self, share: Share) -> None:
        """A failure to close concerns this share only, which is opened from its committed offsets next time."""
        opened = self._open.pop(share, None)
        if opened is None:
            return
        try:
            for partition in opened.partitions:
                self._source_reader().remove(partition)
            opened.task.close()
        except Exception as error:  # noqa: BLE001 - the other shares must stay open
            _logger.warning("share not closed cleanly", trace=trace_of(error))
        self._divide_memory()

    def close_all(self) -> None:
        for share in list(self._open):
            self.close(share)
        if self._reader is not None:
            self._reader.close()
        self._registry.close()

    def _source_reader(self) -> SourceReader:
        if self._reader is None:
            self._reader = SourceReader(self._job.kafka, self._job.settings.group_id, ARCHIVE_FAULTS)
        return self._reader

    def _first_offset(self, shape: TopicShape, partition: SourcePartition) -> StoredOffset:
        first, _ = self._topics.bounds([partition])[partition]
        return CutPosition(first, 0, self._job.settings.partitions_per_share, 0.0).stored(shape.topic_id)

    def _schema_plans(self, topic: str) -> SchemaPlans:
        if topic not in self._plans:
            table = self._job.settings.definition_of(topic).table
            self._plans[topic] = SchemaPlans(self._store, self._registry, table)
        return self._plans[topic]

    def _share_settings(self, topic: str, stream: Stream) -> ShareSettings:
        own = self._job.settings
        definition = own.definition_of(topic)
        cut = CutSettings(own.cut_rows, own.cut_bytes, own.cut_seconds, own.cut_files, own.cut_at_new_schema)
        return ShareSettings(
            own.group_id,
            definition,
            cut,
            own.partitions_per_share,
            own.offset_refresh_hours * 3600,
            own.idle_seconds,
            stream.is_compacted,
        )

    def _divide_memory(self) -> None:
        """All shares together keep so many bytes in memory."""
        for opened in self._open.values():
            opened.task.spill.most_bytes = self._job.settings.buffer_bytes // len(self._open)


def _own_folder(spool: Path, share_id: str) -> Path:
    """The share's folder of this process. Those of processes that have ended are deleted."""
    for folder in spool.glob(f"{share_id}.*"):
        if not Path("/proc", folder.name.rpartition(".")[2]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    return spool / f"{share_id}.{os.getpid()}"
