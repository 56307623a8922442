"""`cassandra-warehouse plan`: which topics are loaded into which tables, and the SQL for their newest schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from warehouse.faults import schema_refused
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.records import Load, State, TableName
from warehouse.tables.columns import ColumnError, PersonalData, comments, loaded_fields, merge_columns
from warehouse.tables.marks import SchematizerCatalogue
from warehouse.tables.schemas import Schemas
from warehouse.targets.loader import table_statements
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.settings import Settings
    from warehouse.targets.loader import Loader


class Planned(NamedTuple):
    """A topic that is loaded."""

    # Its name.
    topic: str
    # Its table.
    table: TableName
    # What is done with personal fields.
    personal_data: PersonalData


def print_plan(settings: Settings) -> None:
    """Print the plan of each topic. CdcError."""
    for line in plan_lines(settings):
        click.echo(line)


def plan_lines(settings: Settings) -> Iterator[str]:
    """The lines of each topic. CdcError."""
    planner = TopicPlanner(job_of(settings))
    topics = planner.find_topics()
    if not topics:
        yield "no topic matches warehouse.topics or is of warehouse.deployment"
    loader = open_loader(settings.warehouse)
    try:
        with (
            RegistryClient(settings.registry) as registry,
            SchematizerClient.of_settings(settings.registry) as schematizer,
        ):
            loader.prepare()
            for topic in topics:
                schemas = Schemas(registry, topic, SchematizerCatalogue(schematizer))
                made = planner.definition_of(topic)
                table = made.table(topic, settings.warehouse.default_schema)
                newest = registry.latest(f"{topic}-value")
                if newest is None:
                    yield f"{topic} → {table}: the registry has no schema of its values yet"
                    continue
                planned = Planned(topic, table, made.personal_data)
                yield from _topic_lines(planned, newest[0], schemas, loader.of_form(made.form))
    finally:
        loader.connection.close()


def _topic_lines(planned: Planned, schema_id: int, schemas: Schemas, loader: Loader) -> Iterator[str]:
    topic, table, personal_data = planned
    before = loader.read_state(table)
    known = () if before is None else before.columns
    fields = loaded_fields(schemas.find(schema_id), known, personal_data, topic)
    try:
        columns = merge_columns(known, fields, loader.connection.dialect, loader.form)
    except ColumnError as error:
        raise schema_refused(topic, schema_id, str(error)) from error
    after = State(0, topic, "", {}, columns, schema_id)
    is_new = before is None or before.schema_id < schema_id
    load = Load(table, before, after, {}, (), comments(fields, columns) if is_new else {})
    statements = list(table_statements(load, loader.form, loader.connection))
    done = "not loaded yet" if before is None else f"loaded up to {sum(before.offsets.values()):,} messages"
    yield f"{topic} → {table}: {done}; schema {schema_id} needs {len(statements)} statements"
    yield from (f"  {statement};" for statement in statements)
