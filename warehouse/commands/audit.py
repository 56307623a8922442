"""`cassandra-warehouse audit`: tables against the folds of their topics, at exactly the offsets that they are at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import CdcError
from stream_runtime.kafka import Topics
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader
from stream_runtime.records import SourcePartition
from stream_runtime.source_batch import SourceBatch
from warehouse.faults import (
    WAREHOUSE_FAULTS,
    command_refused,
    state_foreign,
    table_busy,
    tables_differ,
)
from warehouse.job.definitions import each_definition
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.loading.fitting import Fitting
from warehouse.loading.rows import RowMaker, newest
from warehouse.names import table_name
from warehouse.tables.schemas import Schemas
from warehouse.targets.audit import TableAudit
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.loading.rows import SchemaRows
    from warehouse.records import State
    from warehouse.settings import Settings
    from warehouse.targets.loader import Loader

_READ_SECONDS = 1.0
_SHOWN = 20


def audit_tables(settings: Settings, topics: Sequence[str], *, repairs: bool) -> None:
    """Audit the tables of these topics, or of all; print what differs. CdcError WAREHOUSE_AUDIT if rows differ."""
    if job_of(settings).role != "load":
        raise command_refused("audit", settings.warehouse.target.partition(":")[0])
    chosen = list(topics) or TopicPlanner(job_of(settings)).find_topics()
    if not chosen:
        raise WAREHOUSE_FAULTS.setting_missing("topics", "no topic matches it")
    loader = open_loader(settings.warehouse)
    try:
        with RegistryClient(settings.registry) as registry:
            count = 0
            for topic, made in each_definition(settings, chosen).items():
                audits = Audits(settings, registry, loader.of_form(made.form))
                count += audits.audit(topic, repairs=repairs)
    finally:
        loader.connection.close()
    if count:
        raise tables_differ(count)


class Audits:
    """Audits of the tables of a warehouse."""

    def __init__(self, settings: Settings, registry: RegistryClient, loader: Loader) -> None:
        self._settings = settings
        self._registry = registry
        self._loader = loader
        self._topics = Topics(settings.kafka)

    def audit(self, topic: str, *, repairs: bool) -> int:
        """The number of rows of a topic's table that differ, and are not repaired. CdcError."""
        own = self._settings.warehouse
        table = table_name(topic, own.default_schema, self._loader.form.suffix)
        audit = TableAudit(self._loader, table)
        fitting = Fitting(topic, self._loader.connection.dialect, nulls_refused=own.on_value_refused == "null")
        try:
            with audit.snapshot(repairs=repairs) as state:
                if state.topic != topic:
                    raise state_foreign(table, f"is that of the topic {state.topic}, and not of {topic}")
                for made in self._rows_before(state):
                    self._stage(audit, made, fitting, state)
                count, broken = audit.compare(), audit.broken()
                for difference in [*audit.differences(_SHOWN), *broken[:_SHOWN]]:
                    click.echo(f"{table}: {difference}")
                if count and repairs:
                    audit.repair()
        except LoadTakenError:
            raise table_busy(table) from None
        finally:
            self._loader.connection.release()
        done = "repaired" if repairs and count else "differ"
        click.echo(f"{table} at {sum(state.offsets.values()):,} messages: {count:,} rows {done}")
        if broken:
            click.echo(f"{table}: {len(broken):,} changes do not follow the version before them")
        return len(broken) + (0 if repairs else count)

    def _stage(self, audit: TableAudit, made: Sequence[SchemaRows], fitting: Fitting, state: State) -> None:
        versions = [found.rows for found in made]
        chosen = versions if self._loader.form.keeps_all else newest(versions)
        audit.add(fitting.fit(chosen, state.columns)[0])
        for schema, _, before in made:
            if schema is not None and before is not None:
                [rows], _ = fitting.fit([before.rows], state.columns)
                audit.add_before(schema.schema_id, rows, before.is_there)

    def _rows_before(self, state: State) -> Iterator[list[SchemaRows]]:
        """The rows of all messages before the offsets of a table, in parts. CdcError."""
        schemas = Schemas(self._registry, state.topic)
        form, is_envelope = self._loader.form, schemas.find(state.schema_id).is_envelope
        maker = RowMaker(schemas, shows_deleted=form.shows_deleted, keeps_before=form.keeps_all)
        shape = self._topics.each_shape([state.topic])[state.topic]
        if isinstance(shape, CdcError):
            raise shape
        if shape.topic_id != state.topic_id:
            raise WAREHOUSE_FAULTS.topic_recreated(state.topic)
        left = {SourcePartition(state.topic, number): offset for number, offset in state.offsets.items() if offset}
        bound = dict.fromkeys(left, shape)
        own = self._settings.warehouse
        reader = SourceReader(self._settings.kafka, f"{own.group_id}-audit", WAREHOUSE_FAULTS)
        try:
            for partition in left:
                reader.add(partition, None)
            while left:
                read = check_sources(reader.read(own.load_rows, _READ_SECONDS), bound, self._topics, WAREHOUSE_FAULTS)
                for error in read.errors.values():
                    raise error
                made: list[SchemaRows] = []
                for partition, following in read.following.items():
                    batch = read.records.get(partition)
                    if isinstance(batch, SourceBatch):
                        made += maker.make(
                            partition, batch.before(left[partition]), deletes_by_tombstone=not is_envelope
                        )
                    if following >= left[partition]:
                        reader.remove(partition)
                        del left[partition]
                yield made
        finally:
            reader.close()
