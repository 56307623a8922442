"""The shares that a worker has open: their producers, rows and files."""

from __future__ import annotations

import os
import shutil
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from archive.fault_points import ArchivePoint
from archive.faults import ARCHIVE_FAULTS
from archive.files import open_store
from archive.job.plan import DEAD_LETTER_BYTES, ArchivePlan, Stream
from archive.job.share_report import ShareReport, open_report
from archive.writer.cut import CutSettings
from archive.writer.positions import CutPosition
from archive.writer.schema_plans import SchemaPlans
from archive.writer.share_parts import EventTopic, ShareParts, ShareSettings
from archive.writer.share_task import ShareTask
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.messages.topics import partition_for
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.stateless_task import Done
from stream_runtime.fault_points import reach
from stream_runtime.kafka import PRODUCER_DEFAULTS
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.records import SourcePartition, TopicShape
from stream_runtime.source_batch import SourceBatch
from stream_runtime.worker.open_shares import OpenShares

if TYPE_CHECKING:
    from archive.job.plan import Job
    from archive.writer.report import CutReport
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.kafka.source_reader import Read, SourceReader
    from stream_runtime.records import Share


class OpenArchive(NamedTuple):
    """An open share of a topic."""

    # The topic.
    stream: Stream
    # Its protocol.
    task: ShareTask
    # The partitions that are read, with the shape of the topic.
    shapes: dict[SourcePartition, TopicShape]

    def close(self) -> None:
        self.task.close()


class OpenArchives(OpenShares[ArchivePlan, OpenArchive]):
    """A share may have several partitions. One consumer for all."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.kafka, ARCHIVE_FAULTS)
        self._job = job
        self._store = open_store(job.settings.location)
        self._registry = RegistryClient(job.registry)
        self._plans: dict[str, SchemaPlans] = {}
        self._worked: dict[Share, float] = defaultdict(float)

    def group(self, _reader: str) -> str:
        return self._job.settings.group_id

    def is_planned(self, plan: ArchivePlan, share: Share, opened: OpenArchive) -> bool:
        return plan.streams.get(share.stream) == opened.stream

    def open(self, plan: ArchivePlan, share: Share) -> None:
        super().open(plan, share)
        self._divide_memory()

    def open_share(self, plan: ArchivePlan, share: Share, reader: SourceReader) -> OpenArchive:
        stream = plan.streams[share.stream]
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
            self._schema_plans(stream.definition.table),
            EventTopic(own.events_topic, partition_for(key, plan.events)),
            own.dead_letter_topic,
            self._topics.bounds,
            _own_folder(own.spool_directory / own.group_id, share.id),
            own.buffer_bytes,
        )
        try:
            task = ShareTask(share, stream.shape, parts, self._share_settings(stream))
        except BaseException:
            commits.close()
            raise
        for partition, offset in task.offsets.items():
            reader.add(partition, offset)
        return OpenArchive(stream, task, dict.fromkeys(task.offsets, stream.shape))

    def process(self, share: Share, read: Read) -> Done:
        """Spill what was read, and commit the cut if it ends. A share whose cut was begun by another task is closed
        after it, to read on from its end.
        """
        started = time.monotonic()
        try:
            return self._process(share, read)
        finally:
            self._worked[share] += time.monotonic() - started

    def report_open(self, share: Share) -> Report:
        """Report what an open share has, and the time that it has worked since the last report."""
        own = open_report(self._open[share].task.open_files)
        return NOTHING_DONE._replace(seconds=self._worked.pop(share, 0.0), own=own)

    def _process(self, share: Share, read: Read) -> Done:
        opened, own = self._open[share], self._job.settings
        task = opened.task
        for partition in sorted(opened.shapes.keys() & read.following.keys()):
            batch = read.records.get(partition)
            if batch is not None and not isinstance(batch, SourceBatch):
                raise TypeError("a partition was read in two parts")
            for part in () if batch is None else batch.parts(own.chunk_max_bytes, own.chunk_max_messages):
                task.take(partition, part, part[-1].offset + 1)
            task.take(partition, None, read.following[partition])
        was_retry = task.is_retry
        report = task.commit_due()
        if report is not None and was_retry:
            self.close(share)
        return Done() if report is None else Done(_report(report))

    def close(self, share: Share) -> None:
        super().close(share)
        self._divide_memory()

    def close_all(self) -> None:
        super().close_all()
        self._registry.close()

    def _first_offset(self, shape: TopicShape, partition: SourcePartition) -> StoredOffset:
        first, _ = self._topics.bounds([partition])[partition]
        return CutPosition(first, 0, self._job.settings.partitions_per_share, time.time()).stored(shape.topic_id)

    def _schema_plans(self, table: str) -> SchemaPlans:
        """No two topics have one table."""
        if table not in self._plans:
            self._plans[table] = SchemaPlans(self._store, self._registry, table)
        return self._plans[table]

    def _share_settings(self, stream: Stream) -> ShareSettings:
        own = self._job.settings
        cut = CutSettings(own.cut_rows, own.cut_bytes, own.cut_seconds, own.cut_files, own.cut_at_new_schema)
        return ShareSettings(
            own.group_id,
            stream.definition,
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


def _report(cut: CutReport) -> Report:
    native = cut.rows - cut.as_bytes
    return NOTHING_DONE._replace(messages=cut.messages, changes=cut.rows, chunks=1, native=native, own=ShareReport(cut))


def _own_folder(spool: Path, share_id: str) -> Path:
    """The share's folder of this process. Those of processes that have ended are deleted."""
    for folder in spool.glob(f"{share_id}.*"):
        if not Path("/proc", folder.name.rpartition(".")[2]).exists():
            shutil.rmtree(folder, ignore_errors=True)
    return spool / f"{share_id}.{os.getpid()}"
