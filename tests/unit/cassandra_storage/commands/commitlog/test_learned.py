"""Schemas learned from real nodes' logs are those that the nodes' system_schema had."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.commands.commitlog.learned import LearnedSchema
from cassandra_storage.commands.commitlog.schemas import Schemas
from cassandra_storage.formats.commitlog.descriptor import read_descriptor
from cassandra_storage.formats.rows.mutation import first_table, read_mutation
from cassandra_storage.formats.schema.schema_keyspace import SCHEMA_TABLES

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.partition import PartitionUpdate
    from cassandra_storage.formats.schema.tables import TableMetadata
    from tests.support.cassandra_storage.commitlog.fixtures import CdcRaw


def schema_mutations(cdc_raw: CdcRaw) -> list[tuple[PartitionUpdate, ...]]:
    found = []
    for segment in cdc_raw.vectors.segments:
        descriptor = read_descriptor(segment.data)
        assert descriptor is not None
        for entry in segment.entries():
            if first_table(entry.mutation) in SCHEMA_TABLES:
                found.append(read_mutation(entry.mutation, descriptor.messaging_version, SCHEMA_TABLES))  # noqa: PERF401
    return found


def own(tables: dict[bytes, TableMetadata]) -> dict[bytes, TableMetadata]:
    return {table_id: table for table_id, table in tables.items() if table.keyspace == "vectors"}


def test_all_tables_of_the_workload(cdc_raw: CdcRaw) -> None:
    """CREATE, ALTER, DROP of columns, user types that grow, views."""
    learned: dict[bytes, TableMetadata] = {}
    schema = LearnedSchema()
    for mutation in schema_mutations(cdc_raw):
        learned |= schema.apply(mutation)
    real = own(cdc_raw.vectors.tables)
    assert len(real) >= 9
    assert own(learned).items() >= real.items()


def test_an_alter_alone_makes_no_table_known(cdc_raw: CdcRaw) -> None:
    """Each mutation by itself: only those that hold a whole table make one known, as it then was."""
    known = set()
    for mutation in schema_mutations(cdc_raw):
        for table_id, table in own(LearnedSchema().apply(mutation)).items():
            real = cdc_raw.vectors.tables[table_id]
            assert (table.partition_key, table.clustering) == (real.partition_key, real.clustering)
            known.add(table.name)
    altered = [
        one for one in schema_mutations(cdc_raw) if any(update.table.name == "dropped_columns" for update in one)
    ]
    assert altered
    for mutation in altered:
        assert not own(LearnedSchema().apply(mutation))
    assert "wide" in known


def test_a_dropped_column_stays_readable(plain_table: TableMetadata) -> None:
    schemas = Schemas([plain_table])
    schemas._add(replace(plain_table, regular_columns=()))
    (dropped,) = schemas.tables[plain_table.id.bytes].dropped_columns.values()
    assert dropped.column == plain_table.regular_columns[0]
