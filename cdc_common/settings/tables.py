"""All tables of cdc.toml by name. A program's table is named here and imported when it is needed: what programs share
imports none of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Self

from pydantic import ConfigDict, create_model

from cdc_common.settings.base import Table

TABLES = {
    "cassandra": "cdc_common.settings.shared:CassandraSettings",
    "kafka": "cdc_common.settings.shared:KafkaSettings",
    "registry": "cdc_common.settings.shared:RegistrySettings",
    "node": "cdc_common.settings.shared:NodeSettings",
    "publisher": "publisher.settings:PublisherSettings",
    "filler": "filler.settings:FillerSettings",
    "materializer": "materializer.settings:MaterializerSettings",
    "transformer": "transformer.settings:TransformerSettings",
    "joinery": "joinery.settings:JoinerySettings",
    "archive": "archive.settings:ArchiveSettings",
    "warehouse": "warehouse.settings:WarehouseSettings",
    "schematizer": "schematizer.settings:SchematizerSettings",
    "log": "cdc_common.settings.shared:LogSettings",
}
"""The name of each table, in the order of configuration.md: MODULE:CLASS."""


@cache
def table_class(table: str) -> type[Table]:
    """The class of a table; KeyError if there is no such table."""
    module, _, name = TABLES[table].partition(":")
    found: type[Table] = getattr(import_module(module), name)
    return found


@cache
def all_tables() -> type[Table]:
    """The class of the whole cdc.toml: it has a field for each table."""
    fields: dict[str, Any] = {table: (table_class(table), table_class(table)()) for table in TABLES}
    return create_model("AllTables", __base__=Table, **fields)


class View(Table):
    """The settings that a program reads of another program's table. The owner has their defaults and meanings."""

    model_config = ConfigDict(extra="ignore", from_attributes=True)

    @classmethod
    def of(cls, table: str) -> Self:
        """The view of a table whose settings all have their defaults."""
        return cls.model_validate(table_class(table)())
