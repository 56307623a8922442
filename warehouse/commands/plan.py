"""`cassandra-warehouse plan`: which topics are loaded into which tables, and the SQL for their newest schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.confluent import RegistryClient
from warehouse.faults import schema_refused
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.names import table_name
from warehouse.records import Load, State
from warehouse.tables.columns import ColumnError, merge_columns
from warehouse.tables.schemas import Schemas
from warehouse.targets.loader import table_statements
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.settings import Settings
    from warehouse.targets.loader import Loader


def print_plan(settings: Settings) -> None:
    """Print the plan of each topic. CdcError."""
    for line in plan_lines(settings):
        click.echo(line)


def plan_lines(settings: Settings) -> Iterator[str]:
    """The lines of each topic. CdcError."""
    topics = TopicPlanner(job_of(settings)).find_topics()
    if not topics:
        yield "no topic matches warehouse.topics"
    loader = open_loader(settings.warehouse)
    try:
        with RegistryClient(settings.registry) as registry:
            loader.prepare()
            for topic in topics:
                yield from _topic_lines(settings, topic, registry, loader)
    finally:
        loader.connection.close()


def _topic_lines(settings: Settings, topic: str, registry: RegistryClient, loader: Loader) -> Iterator[str]:
    table = table_name(topic, settings.warehouse.default_schema, loader.form.suffix)
    before = loader.read_state(table)
    newest = registry.latest(f"{topic}-value")
    if newest is None:
        yield f"{topic} → {table}: the registry has no schema of its values yet"
        return
    schema_id = newest[0]
    schema = Schemas(registry, topic).find(schema_id)
    known = () if before is None else before.columns
    try:
        columns = merge_columns(known, schema.fields, loader.connection.dialect, loader.form)
    except ColumnError as error:
        raise schema_refused(topic, schema_id, str(error)) from error
    after = State(0, topic, "", {}, columns, schema_id)
    load, is_indexed = Load(table, before, after, {}, ()), loader.connection.is_indexed
    statements = list(table_statements(load, loader.form, is_indexed=is_indexed))
    done = "not loaded yet" if before is None else f"loaded up to {sum(before.offsets.values()):,} messages"
    yield f"{topic} → {table}: {done}; schema {schema_id} needs {len(statements)} statements"
    yield from (f"  {statement};" for statement in statements)
