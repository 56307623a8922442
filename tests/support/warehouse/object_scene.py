"""A table that is loaded by signals: the writers of a topic store objects, and the warehouse copies them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cdc_native.kafka.source_batch import SourceBatch as NativeBatch
from stream_runtime.records import TopicShape
from stream_runtime.source_batch import SourceBatch
from tests.support.warehouse.scene import TOPIC, Warehouse
from tests.support.warehouse.writer_scene import SIGNALS
from warehouse.loading.signal_task import SignalSettings, SignalSource, SignalTask
from warehouse.tables.schemas import Schemas
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.loader import Loader

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.warehouse.scene import Row
    from tests.support.warehouse.writer_scene import Writer
    from warehouse.targets.connection import Connection

SIGNALS_ID = "signals-id"


class ObjectWarehouse(Warehouse):
    """As Warehouse, with a writer before it."""

    def __init__(self, writer: Writer, connect: Callable[[], Connection]) -> None:
        super().__init__(writer.topic, connect, writer.rules.form)
        self.writer = writer
        self.signals_id = SIGNALS_ID
        self.signals = SignalSettings(10**9, 0.0)

    def open(self) -> SignalTask:  # type: ignore[override] # both tasks load
        loader = Loader(self.connect(), "cdc_warehouse", self.form, self.deleted_days)
        shape = TopicShape(self.topic.shape.partitions, self.signals_id)
        schemas = Schemas(self.topic.registry, TOPIC, self.catalogue)
        return SignalTask(
            SignalSource(self.table, TOPIC, SIGNALS, shape), loader, schemas, self.writer.rules, self.signals
        )

    def take(self, task: SignalTask, most: int) -> None:  # type: ignore[override] # as open
        """Write all, in batches of so many messages, and take the next signals of each partition."""
        self.writer.run(most)
        self.take_signals(task)

    def take_signals(self, task: SignalTask) -> None:
        for partition, offset in task.offsets.items():
            found = self.writer.signals(partition)
            messages = [(b"k", signal.encode(), at, 0) for at, signal in enumerate(found)][offset or 0 :]
            batch = SourceBatch(NativeBatch.of(SIGNALS, partition, messages)) if messages else None
            task.take(partition, batch, len(found))

    def run(self, most: int = 1000) -> None:
        self.writer.run(most)
        task = self.open()
        try:
            self.take_signals(task)
            task.load_due()
        except LoadTakenError:
            self.run(most)
        finally:
            task.close()

    def rows(self, *own: str) -> list[Row]:
        """JSON as it is in PostgreSQL. Redshift has texts of it."""
        return [
            {
                name: json.loads(value) if name == "tags" and isinstance(value, str) else value
                for name, value in row.items()
            }
            for row in super().rows(*own)
        ]
