"""`cassandra-warehouse reload`: loads a topic again beside its table, and then swaps both tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.errors.codes import CdcError
from stream_runtime.kafka import Topics
from warehouse.faults import command_refused, table_busy, topic_empty
from warehouse.job.definitions import each_definition
from warehouse.job.open_tables import OpenTables
from warehouse.job.plan import WarehousePlan, share_of
from warehouse.job.run import job_of
from warehouse.loading.report import LoadReport
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.open import open_loader
from warehouse.targets.reload import beside, drop, swap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import TopicShape
    from warehouse.job.definitions import Definition
    from warehouse.records import TableName
    from warehouse.settings import Settings

_READ_SECONDS = 1.0
_TRIES = 20


def reload_tables(settings: Settings, topics: Sequence[str]) -> None:
    """Reload the tables of these topics, one after the other. CdcError."""
    if job_of(settings).role != "load":
        raise command_refused("reload", settings.warehouse.target.partition(":")[0])
    made = each_definition(settings, topics)
    for topic, shape in Topics(settings.kafka).each_shape(list(topics)).items():
        if isinstance(shape, CdcError):
            raise shape
        reload = Reload(settings, topic, shape, made[topic])
        try:
            reload.run()
        except LoadTakenError:
            raise table_busy(reload.table) from None
        finally:
            reload.close()


class Reload:
    """A topic that is loaded into a table beside its own."""

    def __init__(self, settings: Settings, topic: str, shape: TopicShape, made: Definition) -> None:
        self._own = settings.warehouse
        self._topics = Topics(settings.kafka)
        self._share = share_of(topic, shape.partitions)
        self._loader = open_loader(self._own).of_form(made.form)
        self.table: TableName = made.table(topic, self._own.default_schema)
        job = job_of(settings)
        self._plan = WarehousePlan(job, {topic: shape}, {topic: made})
        self._tables = OpenTables(job, is_beside=True)
        self._loaded: dict[int, int] = {}

    def run(self) -> None:
        """Load all messages, and swap the tables. CdcError. LoadTakenError if another reload has begun."""
        self._loader.prepare()
        drop(self._loader, beside(self.table))
        self._loader.connection.release()
        self._tables.open(self._plan, self._share)
        for _ in range(_TRIES):
            count = self._load_all()
            if not self._loaded:
                raise topic_empty(self._share.stream)
            is_swapped = swap(self._loader, self.table)
            self._loader.connection.release()
            if is_swapped:
                click.echo(f"{self.table}: swapped at {count:,} messages")
                return
        raise table_busy(self.table)

    def close(self) -> None:
        self._tables.close_all()
        self._loader.connection.close()

    def _load_all(self) -> int:
        """Load up to where the topic ends now, and return the sum of the offsets. CdcError. LoadTakenError."""
        ends = self._topics.ends(self._share.partitions)
        while any(self._loaded.get(at.partition, 0) < end for at, end in ends.items()):
            for _, read in self._tables.read(self._own.load_rows, _READ_SECONDS):
                self._take(read)
        return sum(self._loaded.values())

    def _take(self, read: Read | CdcError) -> None:
        if isinstance(read, CdcError):
            raise read
        for error in read.errors.values():
            raise error
        report = self._tables.process(self._share, read).report
        if report is not None and isinstance(report.own, LoadReport):
            self._loaded = dict(report.own.offsets)
