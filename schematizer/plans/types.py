"""The type of a column in each warehouse, from the Avro type of its field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Types(NamedTuple):
    """A warehouse's names of types."""

    # By Avro's primitive or logical type.
    plain: Mapping[str, str]
    # The type of arrays, maps, records and unions.
    nested: str
    # The largest precision of its decimals, in digits.
    max_precision: int


POSTGRESQL = Types(
    {
        "boolean": "BOOLEAN",
        "int": "INTEGER",
        "long": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "string": "TEXT",
        "uuid": "UUID",
        "date": "DATE",
        "time-millis": "TIME(3)",
        "time-micros": "TIME(6)",
        "timestamp-millis": "TIMESTAMPTZ(3)",
        "timestamp-micros": "TIMESTAMPTZ(6)",
        "local-timestamp-millis": "TIMESTAMP(3)",
        "local-timestamp-micros": "TIMESTAMP(6)",
        "unbounded-decimal": "NUMERIC",
    },
    "JSONB",
    1000,
)
REDSHIFT = Types(
    {
        "boolean": "BOOLEAN",
        "int": "INTEGER",
        "long": "BIGINT",
        "float": "REAL",
        "double": "DOUBLE PRECISION",
        "bytes": "VARBYTE(65535)",
        "string": "VARCHAR(65535)",
        "uuid": "VARCHAR(36)",
        "date": "DATE",
        "time-millis": "TIME",
        "time-micros": "TIME",
        "timestamp-millis": "TIMESTAMPTZ",
        "timestamp-micros": "TIMESTAMPTZ",
        "local-timestamp-millis": "TIMESTAMP",
        "local-timestamp-micros": "TIMESTAMP",
        "unbounded-decimal": "VARCHAR(65535)",
    },
    "SUPER",
    38,
)
SNOWFLAKE = Types(
    {
        "boolean": "BOOLEAN",
        "int": "INTEGER",
        "long": "BIGINT",
        "float": "FLOAT",
        "double": "DOUBLE",
        "bytes": "BINARY",
        "string": "VARCHAR",
        "uuid": "VARCHAR(36)",
        "date": "DATE",
        "time-millis": "TIME(3)",
        "time-micros": "TIME(6)",
        "timestamp-millis": "TIMESTAMP_TZ(3)",
        "timestamp-micros": "TIMESTAMP_TZ(6)",
        "local-timestamp-millis": "TIMESTAMP_NTZ(3)",
        "local-timestamp-micros": "TIMESTAMP_NTZ(6)",
        "unbounded-decimal": "VARCHAR",
    },
    "VARIANT",
    38,
)
_UNBOUNDED = "Decimal"
"""The record of a CQL decimal, which has no bound."""


def sql_type(avro: Any, types: Types) -> str:  # noqa: ANN401 - JSON
    """A decimal that is too wide for the warehouse is text; an enum is text; a duration is 12 bytes."""
    if isinstance(avro, str):
        return types.plain.get(avro, types.nested)  # otherwise it names a record
    if isinstance(avro, list):
        return types.nested
    logical = avro.get("logicalType")
    if logical == "decimal" and _is_decimal(avro):
        return _decimal(avro["precision"], avro.get("scale", 0), types)
    return types.plain.get(_plain_name(avro, types), types.nested)


def _plain_name(avro: dict[str, Any], types: Types) -> str:
    """The name in `plain` of a type that is written as an object."""
    logical = avro.get("logicalType")
    if isinstance(logical, str) and logical in types.plain:
        return logical
    if avro["type"] == "record" and avro["name"] == _UNBOUNDED:
        return "unbounded-decimal"
    return {"enum": "string", "fixed": "bytes"}.get(avro["type"], str(avro["type"]))


def _is_decimal(avro: dict[str, Any]) -> bool:
    """Avro takes a type whose precision or scale are wrong as the one without them. They may be any JSON."""
    precision, scale = avro.get("precision"), avro.get("scale", 0)
    return type(precision) is int and type(scale) is int and precision > 0 and 0 <= scale <= precision


def _decimal(precision: int, scale: int, types: Types) -> str:
    if precision > types.max_precision:
        return types.plain["unbounded-decimal"]
    return f"NUMERIC({precision}, {scale})"
