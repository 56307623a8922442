"""The partitions that a worker writes as objects: their producers and batches."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.stateless_task import Done
from stream_runtime.kafka import PRODUCER_DEFAULTS, read_last
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.records import SourcePartition, TopicShape
from stream_runtime.source_batch import SourceBatch
from stream_runtime.worker.open_shares import OpenShares
from warehouse.fault_points import WriterPoint
from warehouse.faults import WAREHOUSE_FAULTS, signal_unreadable
from warehouse.files import open_store
from warehouse.job.definitions import Definition
from warehouse.job.plan import WarehousePlan, signals_of
from warehouse.loading.fitting import Fitting
from warehouse.loading.table_columns import ColumnRules
from warehouse.signals import Signal
from warehouse.tables.marks import SchematizerCatalogue
from warehouse.tables.schemas import Schemas
from warehouse.targets.open import open_loader
from warehouse.writing.batch_task import BatchParts, BatchSettings, BatchTask
from warehouse.writing.intent import Paths

if TYPE_CHECKING:
    from stream_runtime.kafka.source_reader import Read, SourceReader
    from stream_runtime.records import Share
    from warehouse.job.plan import Job

_IDLE_SECONDS = 300.0  # until a signal without objects moves an offset past markers of transactions


class OpenBatch(NamedTuple):
    """An open partition."""

    # The shape of its topic.
    shape: TopicShape
    # How its table is made.
    definition: Definition
    # Its protocol.
    task: BatchTask
    # The partition.
    partition: SourcePartition

    @property
    def shapes(self) -> dict[SourcePartition, TopicShape]:
        return {self.partition: self.shape}

    def close(self) -> None:
        self.task.close()


class OpenBatches(OpenShares[WarehousePlan, OpenBatch]):
    """A share is one partition. One consumer for all."""

    def __init__(self, job: Job) -> None:
        super().__init__(job.kafka, WAREHOUSE_FAULTS)
        self._job = job
        self._store = open_store(job.settings.location)
        self._registry = RegistryClient(job.registry)
        self._schematizer = SchematizerClient.of_settings(job.registry)
        self._catalogue = SchematizerCatalogue(self._schematizer)
        self._dialect = open_loader(job.settings).connection.dialect

    def group(self, _reader: str) -> str:
        return self._job.settings.group_id

    def is_planned(self, plan: WarehousePlan, share: Share, opened: OpenBatch) -> bool:
        planned = plan.shapes.get(share.stream), plan.definitions.get(share.stream)
        return planned == (opened.shape, opened.definition)

    def open_share(self, plan: WarehousePlan, share: Share, reader: SourceReader) -> OpenBatch:
        own, at = self._job.settings, share.partition
        shape, definition = plan.shapes[share.stream], plan.definitions[share.stream]
        limits = PRODUCER_DEFAULTS._replace(transaction_seconds=own.transaction_timeout_seconds)
        commits = KafkaCommits(
            self._job.kafka, own.group_id, share, reader, limits, before_commit=WriterPoint.SIGNAL_OFFSET_SENT
        )
        signals = signals_of(share.stream, own)
        parts = BatchParts(
            commits,
            self._store,
            Paths(own.group_id, at, shape.topic_id),
            Schemas(self._registry, share.stream, self._catalogue),
            ColumnRules(share.stream, definition.personal_data, self._dialect, definition.form),
            Fitting(share.stream, self._dialect, nulls_refused=own.on_value_refused == "null"),
            signals,
            partial(self._last_signal, SourcePartition(signals, at.partition)),
            lambda: self._topics.bounds([at])[at][0],
        )
        settings = BatchSettings(
            own.load_rows, own.load_bytes, own.load_seconds, _IDLE_SECONDS, own.offset_refresh_hours * 3600
        )
        try:
            task = BatchTask(at, shape, parts, settings)
        except BaseException:
            commits.close()
            raise
        reader.add(at, task.offset)
        return OpenBatch(shape, definition, task, at)

    def process(self, share: Share, read: Read) -> Done:
        """Take what was read, and commit the batch if it ends. A partition whose batch was begun by another task is
        closed after it, to read on from its end.
        """
        opened, own = self._open[share], self._job.settings
        task, at = opened.task, opened.partition
        batch = read.records.get(at)
        if batch is not None and not isinstance(batch, SourceBatch):
            raise TypeError("a partition was read in two parts")
        for part in () if batch is None else batch.parts(own.chunk_max_bytes, own.chunk_max_messages):
            task.take(part, part[-1].offset + 1)
        if at in read.following:
            task.take(None, read.following[at])
        was_retry = task.is_retry
        report = task.commit_due()
        if report is not None and was_retry:
            self.close(share)
        if report is None:
            return Done()
        messages = report.messages
        counts = NOTHING_DONE._replace(messages=messages, changes=report.rows, chunks=1, native=messages)
        return Done(counts._replace(seconds=report.seconds, own=report))

    def close_all(self) -> None:
        super().close_all()
        self._registry.close()
        self._schematizer.close()

    def _last_signal(self, at: SourcePartition) -> Signal | None:
        bounds = self._topics.bounds([at])[at]
        value = read_last(self._job.kafka, at, bounds)
        if value is None:
            return None
        try:
            return Signal.decode(value)
        except (ValueError, KeyError, TypeError) as error:
            raise signal_unreadable(at, bounds[1] - 1) from error
