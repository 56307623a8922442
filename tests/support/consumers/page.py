"""Writes docs/reference/types-by-consumer.md from what the tests of consumers expect:
`python -m tests.support.consumers.page`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.types.cql_types import type_text
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from dev.local_stack.process.paths import project_root
from tests.support.consumers.typed_values import POSTGRESQL, STOPPED, TYPES

if TYPE_CHECKING:
    from tests.support.consumers.typed_values import Typed

PAGE = project_root() / "docs" / "reference" / "types-by-consumer.md"
HEAD = """\
# Types by consumer

This page is made from the tests of consumers (`tests/servers/consumers`). They write ordinary values, null, empty and
extreme values of each type, updates and deletes, and compare what each consumer shows with what was written.

- *PostgreSQL*: the type of the column that Debezium's JDBC sink 3.4 makes in PostgreSQL.
- *Exact*: the forms nearest to Cassandra's bytes: `decimals = "exact"`, `varints = "bytes"`, `durations` and
  `user_types` = `"record"`, `maps` and `collections` = `"native"`.
- Spark 4.0 (`from_avro`) reads all of both columns.

| CQL | default | PostgreSQL | exact | the JDBC sink with it |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    return HEAD + "".join(map(_row, TYPES))


def _row(of: Typed) -> str:
    default, exact = _avro(of, DEFAULT_FORMS), _avro(of, EXACT)
    outcome = "stops" if of.name in STOPPED else "the same" if default == exact else "other values: see the guide"
    shown = "the same" if default == exact else exact
    return f"| {type_text(of.type)} | {default} | {POSTGRESQL[of.name]} | {shown} | {outcome} |\n"


def _avro(of: Typed, forms: TypeForms) -> str:
    return _words(AvroTypes("t", forms).column("c", of.type).schema)


def _words(schema: Any) -> str:  # noqa: ANN401 - Avro's JSON
    if isinstance(schema, str):
        return schema
    if schema.get("connect.name") == "io.debezium.data.Json":
        return "JSON string"
    match schema["type"]:
        case "array":
            return f"array of {_words(schema['items'])}"
        case "map":
            return f"map of {_words(schema['values'])}"
        case "record":
            return f"record {schema['name']}"
    return f"{schema['type']} {schema.get('logicalType', '')}".strip()


if __name__ == "__main__":
    PAGE.write_text(page())
