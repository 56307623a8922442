"""The types that Flink, Spark and DuckDB have for the fields of a change message, by Avro's schema."""

from __future__ import annotations

from typing import Any, NamedTuple

AvroSchema = Any
"""Avro's JSON."""


class SqlTypes(NamedTuple):
    """primitives: by Avro's names. logical: by logical types, which the consumer may not know."""

    primitives: dict[str, str]
    logical: dict[str, str]
    array: str
    map: str
    record: str
    field: str
    comma: str = ", "

    def of(self, schema: AvroSchema) -> str:  # noqa: PLR0911 - one for each kind of schema
        if isinstance(schema, list):
            return self.of(schema[1])
        if isinstance(schema, str):
            return self.primitives[schema]
        if schema.get("logicalType") in self.logical:
            return self.logical[schema["logicalType"]].format_map(schema)
        match schema["type"]:
            case "array":
                return self.array.format(self.of(schema["items"]))
            case "map":
                return self.map.format(self.of(schema["values"]))
            case "record":
                fields = (self.field.format(field["name"], self.of(field["type"])) for field in schema["fields"])
                return self.record.format(self.comma.join(fields))
        return self.primitives[schema["type"]]


FLINK_TYPES = SqlTypes(
    {
        "int": "INT",
        "long": "BIGINT",
        "string": "STRING",
        "float": "FLOAT",
        "double": "DOUBLE",
        "boolean": "BOOLEAN",
        "bytes": "BYTES",
    },
    {"date": "DATE", "timestamp-millis": "TIMESTAMP(3)", "decimal": "DECIMAL({precision}, {scale})"},
    "ARRAY<{}>",
    "MAP<STRING, {}>",
    "ROW<{}>",
    "`{}` {}",
)
SPARK_TYPES = SqlTypes(
    {
        "int": "int",
        "long": "bigint",
        "string": "string",
        "float": "float",
        "double": "double",
        "boolean": "boolean",
        "bytes": "binary",
    },
    {"date": "date", "timestamp-millis": "timestamp"},
    "array<{}>",
    "map<string,{}>",
    "struct<{}>",
    "{}:{}",
    ",",
)
DUCKDB_TYPES = SqlTypes(
    {
        "int": "INTEGER",
        "long": "BIGINT",
        "string": "VARCHAR",
        "float": "FLOAT",
        "double": "DOUBLE",
        "boolean": "BOOLEAN",
        "bytes": "BLOB",
    },
    {},
    "{}[]",
    "MAP(VARCHAR, {})",
    "STRUCT({})",
    "{} {}",
)
"""It reads no logical type: dates and timestamps are numbers."""
