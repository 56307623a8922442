"""The tables that a worker has open. They share one consumer and one connection to the warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_common.clients.registry.confluent import RegistryClient
from stream_runtime.kafka import Topics
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import TopicShape
from stream_runtime.source_batch import SourceBatch
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.loading.table_task import Source, TableTask, TaskSettings
from warehouse.names import table_name
from warehouse.tables.schemas import Schemas
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Collection

    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share
    from warehouse.job.plan import Job, WarehousePlan
    from warehouse.loading.report import LoadReport


class _Open(NamedTuple):
    """A table that is open."""

    shape: TopicShape
    task: TableTask


class OpenTables:
    """Opens and closes tables, and works on them."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._topics = Topics(job.kafka)
        self._registry = RegistryClient(job.registry)
        self._loader = open_loader(job.settings)
        self._reader = SourceReader(job.kafka, job.settings.group_id, WAREHOUSE_FAULTS)
        self._open: dict[Share, _Open] = {}

    @property
    def shares(self) -> set[Share]:
        return set(self._open)

    def keep(self, plan: WarehousePlan, shares: Collection[Share]) -> None:
        """Close all but these, and those whose topics have changed."""
        for share, opened in list(self._open.items()):
            if share not in shares or plan.shapes.get(share.stream) != opened.shape:
                self.close(share)

    def open(self, plan: WarehousePlan, share: Share) -> dict[int, int]:
        """Read the table's state, and read on from its offsets, which are returned. CdcError."""
        shape, own = plan.shapes[share.stream], self._job.settings
        task = TableTask(
            Source(table_name(share.stream, own.default_schema, self._loader.form.suffix), share.stream, shape),
            self._loader,
            Schemas(self._registry, share.stream),
            TaskSettings(own.load_rows, own.load_bytes, own.load_seconds, own.on_value_refused == "null"),
        )
        for partition in share.partitions:
            self._reader.add(partition, task.offsets[partition.partition])
        self._open[share] = _Open(shape, task)
        return {number: offset for number, offset in task.offsets.items() if offset is not None}

    def read(self, most: int, seconds: float) -> Read:
        """Read messages of all open tables' topics. CdcError."""
        read = self._reader.read(most, seconds)
        shapes = {at: opened.shape for share, opened in self._open.items() for at in share.partitions}
        return check_sources(read, shapes, self._topics, WAREHOUSE_FAULTS)

    def take(self, share: Share, read: Read) -> int:
        """Take what was read of a topic, and return the number of its messages. CdcError."""
        count, own = 0, self._job.settings
        task = self._open[share].task
        for partition in sorted(set(share.partitions) & read.following.keys()):
            batch = read.records.get(partition)
            if batch is not None and not isinstance(batch, SourceBatch):
                raise TypeError("a partition was read in two parts")
            for part in () if batch is None else batch.parts(own.chunk_max_bytes, own.chunk_max_messages):
                count += len(part)
                task.take(partition.partition, part, part[-1].offset + 1)
            task.take(partition.partition, None, read.following[partition])
        return count

    def load_due(self, share: Share) -> LoadReport | None:
        """Load a table if it is time. CdcError. LoadTakenError."""
        return self._open[share].task.load_due()

    def release(self) -> None:
        """Let other processes use the warehouse."""
        self._loader.connection.release()

    def close(self, share: Share) -> None:
        """What is taken and not loaded is read again by the next task."""
        if self._open.pop(share, None) is not None:
            for partition in share.partitions:
                self._reader.remove(partition)

    def close_all(self) -> None:
        for share in list(self._open):
            self.close(share)
        self._reader.close()
        self._registry.close()
        self._loader.connection.close()
