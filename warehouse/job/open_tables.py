"""The tables that a worker has open. They share one consumer and one connection to the warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.stateless_task import Done
from stream_runtime.records import SourcePartition, TopicShape
from stream_runtime.source_batch import SourceBatch
from stream_runtime.worker.open_shares import OpenShares
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.job.definitions import Definition
from warehouse.job.plan import WarehousePlan
from warehouse.loading.report import LoadReport
from warehouse.loading.table_task import Source, TableTask, TaskSettings
from warehouse.tables.marks import SchematizerCatalogue
from warehouse.tables.schemas import Schemas
from warehouse.targets.open import open_loader
from warehouse.targets.reload import beside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.errors.codes import CdcError
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.kafka.source_reader import Read, SourceReader
    from stream_runtime.records import Share
    from warehouse.job.plan import Job


class Loading(Protocol):
    """The task of a table: TableTask, or SignalTask."""

    @property
    def offsets(self) -> dict[int, int | None]:
        """The next offset of each partition that it takes."""
        ...

    def take(self, partition: int, batch: SourceBatch | None, following: int, /) -> None: ...

    def load_due(self) -> LoadReport | None: ...


class OpenTable(NamedTuple):
    """An open table."""

    # The shape of its topic.
    shape: TopicShape
    # How the table is made.
    definition: Definition
    # Its protocol.
    task: Loading
    # The partitions of its topic.
    partitions: tuple[SourcePartition, ...]

    @property
    def shapes(self) -> dict[SourcePartition, TopicShape]:
        return dict.fromkeys(self.partitions, self.shape)

    def close(self) -> None:
        """What is taken and not loaded is read again by the next task."""


class OpenTables(OpenShares[WarehousePlan, OpenTable]):
    """A share has all partitions of a topic. One consumer for all."""

    def __init__(self, job: Job, *, is_beside: bool = False) -> None:
        """is_beside: whether the tables are loaded beside those of their topics."""
        super().__init__(job.kafka, WAREHOUSE_FAULTS)
        self._is_beside = is_beside
        self._job = job
        self._registry = RegistryClient(job.registry)
        self._schematizer = SchematizerClient.of_settings(job.registry)
        self._catalogue = SchematizerCatalogue(self._schematizer)
        self._loader = open_loader(job.settings)

    def group(self, _reader: str) -> str:
        return self._job.settings.group_id

    def is_planned(self, plan: WarehousePlan, share: Share, opened: OpenTable) -> bool:
        planned = plan.shapes.get(share.stream), plan.definitions.get(share.stream)
        return planned == (opened.shape, opened.definition)

    def open(self, plan: WarehousePlan, share: Share) -> Report:
        """The report has the offsets that the table is at."""
        super().open(plan, share)
        offsets = self._open[share].task.offsets
        known = {number: offset for number, offset in offsets.items() if offset is not None}
        return NOTHING_DONE._replace(own=LoadReport(0, 0, 0, 0, 0, 0.0, known))

    def open_share(self, plan: WarehousePlan, share: Share, reader: SourceReader) -> OpenTable:
        """Read the table's state, and read its topic on from there."""
        task = self.open_task(plan, share)
        for partition in share.partitions:
            reader.add(partition, task.offsets[partition.partition])
        return OpenTable(plan.shapes[share.stream], plan.definitions[share.stream], task, share.partitions)

    def open_task(self, plan: WarehousePlan, share: Share) -> Loading:
        """Read the table's state."""
        shape, own = plan.shapes[share.stream], self._job.settings
        definition = plan.definitions[share.stream]
        table = definition.table(share.stream, own.default_schema)
        return TableTask(
            Source(beside(table) if self._is_beside else table, share.stream, shape),
            self._loader.of_form(definition.form),
            self._schemas(share.stream),
            TaskSettings(
                own.load_rows,
                own.load_bytes,
                own.load_seconds,
                own.on_value_refused == "null",
                definition.personal_data,
            ),
        )

    def _schemas(self, topic: str) -> Schemas:
        return Schemas(self._registry, topic, self._catalogue)

    def read(self, most: int, seconds: float) -> Iterator[tuple[str, Read | CdcError]]:
        """Other processes may use the warehouse while messages are read, and after what was read is processed."""
        self._loader.connection.release()
        yield from super().read(most, seconds)
        self._loader.connection.release()

    def process(self, share: Share, read: Read) -> Done:
        """Take what was read of a topic, and load its table if it is time."""
        own, task = self._job.settings, self._open[share].task
        for partition in sorted(set(share.partitions) & read.following.keys()):
            batch = read.records.get(partition)
            if batch is not None and not isinstance(batch, SourceBatch):
                raise TypeError("a partition was read in two parts")
            for part in () if batch is None else batch.parts(own.chunk_max_bytes, own.chunk_max_messages):
                task.take(partition.partition, part, part[-1].offset + 1)
            task.take(partition.partition, None, read.following[partition])
        load = task.load_due()
        return Done() if load is None else Done(_report(load))

    def close_all(self) -> None:
        super().close_all()
        self._registry.close()
        self._schematizer.close()
        self._loader.connection.close()


def _report(load: LoadReport) -> Report:
    return NOTHING_DONE._replace(
        messages=load.messages, changes=load.rows, chunks=1, seconds=load.seconds, native=load.messages, own=load
    )
