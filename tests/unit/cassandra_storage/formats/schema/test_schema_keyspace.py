"""The fixed tables of system_schema against what real nodes say of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.schema.schema_keyspace import KEYSPACE, SCHEMA_TABLES, system_table_id
from tests.support.vectors.load import VERSIONS, load

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata


def key_types(table: TableMetadata) -> list[tuple[str, object, bool]]:
    return [(column.name, column.type, column.is_reversed) for column in table.partition_key + table.clustering]


@pytest.mark.parametrize("version", VERSIONS)
def test_each_table_of_a_node_is_known_with_all_its_columns(version: str) -> None:
    real = [table for table in load(version).tables.values() if table.keyspace == KEYSPACE]
    assert len(real) >= 10
    for table in real:
        ours = SCHEMA_TABLES[table.id.bytes]
        types = {column.name: column.type for column in ours.regular_columns}
        assert key_types(ours) == key_types(table)
        assert {column.name: column.type for column in table.regular_columns}.items() <= types.items()
        assert not table.static_columns


@pytest.mark.parametrize("version", VERSIONS)
def test_ids_of_system_tables(version: str) -> None:
    system = [table for table in load(version).tables.values() if table.keyspace in {KEYSPACE, "system"}]
    assert system
    for table in system:
        assert system_table_id(table.keyspace, table.name) == table.id
