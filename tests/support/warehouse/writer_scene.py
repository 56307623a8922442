"""A topic in memory whose messages become objects and signals, with SQLite as the commit protocol of Kafka."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from stream_runtime.records import Share, SourcePartition
from stream_runtime.stores.store import open_store
from tests.support.stream_runtime.sqlite_commits import SqliteCommits
from tests.support.warehouse.scene import TOPIC
from warehouse.fault_points import WriterPoint
from warehouse.faults import WAREHOUSE_FAULTS
from warehouse.loading.fitting import Fitting
from warehouse.loading.table_columns import ColumnRules
from warehouse.signals import Signal
from warehouse.tables.forms import CURRENT, Form
from warehouse.tables.schemas import Schemas
from warehouse.tables.types import REDSHIFT, Dialect
from warehouse.writing.batch_task import BatchParts, BatchSettings, BatchTask, IntentTakenError
from warehouse.writing.intent import Paths

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.archive.scene import Topic

SIGNALS = f"signals.{TOPIC}"
AT_ONCE = BatchSettings(10**9, 10**12, 0.0, idle_seconds=10.0**9, refresh_seconds=10.0**9)


class Writer:
    """The writers of a topic's partitions."""

    def __init__(self, topic: Topic, folder: Path, dialect: Dialect = REDSHIFT, form: Form = CURRENT) -> None:
        folder.mkdir(exist_ok=True)
        self.topic = topic
        self.settings = AT_ONCE
        self.store = open_store(str(folder / "objects"), WAREHOUSE_FAULTS, WriterPoint.OBJECT_IN_STORE)
        self.rules = ColumnRules(TOPIC, "load", dialect, form)
        self.nulls_refused = False
        self.folder = folder
        self._database = folder / "commits.db"

    @property
    def partitions(self) -> list[SourcePartition]:
        return [SourcePartition(TOPIC, number) for number in range(self.topic.shape.partitions)]

    def open(self, partition: SourcePartition) -> BatchTask:
        parts = BatchParts(
            SqliteCommits(self._database, Share.of(partition)),
            self.store,
            Paths("job", partition, self.topic.shape.topic_id),
            Schemas(self.topic.registry, TOPIC),
            self.rules,
            Fitting(TOPIC, self.rules.dialect, nulls_refused=self.nulls_refused),
            SIGNALS,
            lambda: next(reversed(self.signals(partition.partition)), None),
            lambda: self.topic.firsts[partition.partition],
        )
        return BatchTask(partition, self.topic.shape, parts, self.settings)

    def run(self, most: int = 1000) -> None:
        """Write until nothing is left to read."""
        for partition in self.partitions:
            while self._run_one(partition, most):
                pass

    def _run_one(self, partition: SourcePartition, most: int) -> bool:
        """Write a partition with one task. Whether another one must go on."""
        task = self.open(partition)
        try:
            while task.offset < self.topic.ends[partition.partition]:
                was_retry = task.is_retry
                self.take(task, partition, most)
                if task.commit_due() is not None and was_retry:
                    return True
        except IntentTakenError:
            return True
        finally:
            task.close()
        return False

    def take(self, task: BatchTask, partition: SourcePartition, most: int) -> None:
        batch, following = self.topic.read(partition, task.offset, most)
        task.take(batch, following)

    def signals(self, partition: int) -> list[Signal]:
        """The committed signals of a partition, in their order."""
        with sqlite3.connect(self._database) as database:
            query = "SELECT value FROM messages WHERE topic = ? AND number = ? ORDER BY id"
            found = database.execute(query, (SIGNALS, partition)).fetchall()
        return [Signal.decode(value) for (value,) in found]

    def set_offset(self, partition: int, offset: int | None) -> None:
        """Change the committed offset, as an operator may."""
        with sqlite3.connect(self._database) as database:
            database.execute("UPDATE positions SET position = ? WHERE number = ?", (offset, partition))
