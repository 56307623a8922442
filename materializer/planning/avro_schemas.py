"""A table's schema as the Avro schemas of its change messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cassandra_storage.formats.schema.compact_tables import as_selected
from cassandra_storage.formats.schema.tables import TableMetadata
from cdc_common.messages.avro.renames import is_misread, with_aliases
from cdc_common.messages.avro.resolution import can_read
from cdc_common.messages.envelope import key_schema, value_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.messages.avro.type_forms import TypeForms


class AvroSchemas(NamedTuple):
    """A table under one of its schemas, with the Avro schemas of its key and its value."""

    # The table, as SELECT shows it.
    table: TableMetadata
    # The Avro schema of keys, as JSON.
    key: dict[str, Any]
    # The Avro schema of values, as JSON.
    value: dict[str, Any]


def avro_schemas(prefix: str, table: TableMetadata, earlier: Sequence[AvroSchemas], forms: TypeForms) -> AvroSchemas:
    """`earlier`: of the schemas before, whose names of renamed fields become aliases. prefix: kafka.topic_prefix."""
    shown = as_selected(table)
    value = value_schema(shown, prefix, forms)
    former = [avro.value for avro in earlier if avro.table.id == table.id]
    return AvroSchemas(shown, key_schema(shown, prefix, forms), with_aliases(value, former))


def can_follow(value: dict[str, Any], earlier: dict[str, Any]) -> bool:
    """Whether readers with the value schema understand messages written with an earlier one."""
    return can_read(value, earlier) and not is_misread(value, earlier)
