"""The Avro type of each SQL type of MySQL and PostgreSQL, as sqlglot names them. Nothing is lost: what no Avro type can
hold is text as the database writes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from schematizer.converters.converted import ConversionError

if TYPE_CHECKING:
    from collections.abc import Mapping

_T = exp.DType
_MYSQL_DECIMAL = (10, 0)  # DECIMAL without a precision
_UNSIGNED_LONG = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
_INT = (
    _T.TINYINT, _T.SMALLINT, _T.MEDIUMINT, _T.INT, _T.UTINYINT, _T.USMALLINT, _T.UMEDIUMINT, _T.YEAR, _T.SERIAL,
    _T.SMALLSERIAL,
)  # fmt: skip
_STRING = (
    _T.CHAR, _T.NCHAR, _T.VARCHAR, _T.NVARCHAR, _T.TEXT, _T.TINYTEXT, _T.MEDIUMTEXT, _T.LONGTEXT, _T.ENUM, _T.JSON,
    _T.JSONB, _T.XML, _T.INET, _T.MONEY, _T.TIMETZ, _T.INTERVAL, _T.BPCHAR, _T.NAME, _T.HSTORE,
)  # fmt: skip
_BYTES = (
    _T.BINARY, _T.VARBINARY, _T.BLOB, _T.TINYBLOB, _T.MEDIUMBLOB, _T.LONGBLOB, _T.BIT,
)  # fmt: skip
_AVRO: Mapping[exp.DType, Any] = {
    **dict.fromkeys(_INT, "int"),
    **dict.fromkeys(_STRING, "string"),
    **dict.fromkeys(_BYTES, "bytes"),
    _T.BIGINT: "long",
    _T.UINT: "long",
    _T.BIGSERIAL: "long",
    _T.UBIGINT: _UNSIGNED_LONG,
    _T.BOOLEAN: "boolean",
    _T.FLOAT: "float",
    _T.DOUBLE: "double",
    _T.UUID: {"type": "string", "logicalType": "uuid"},
    _T.DATE: {"type": "int", "logicalType": "date"},
    _T.DATETIME: {"type": "long", "logicalType": "local-timestamp-micros"},
    _T.TIMESTAMP: {"type": "long", "logicalType": "local-timestamp-micros"},
    _T.TIMESTAMPTZ: {"type": "long", "logicalType": "timestamp-micros"},
    _T.TIMESTAMPLTZ: {"type": "long", "logicalType": "timestamp-micros"},
}


def avro_type(kind: exp.DataType, dialect: str, column: str) -> Any:  # noqa: ANN401 - JSON
    """Return the Avro type. ConversionError for a type without one, and for a user's own types."""
    if kind.this is _T.ARRAY:
        [items] = kind.expressions or [None]
        if items is None:
            raise ConversionError(f"the array {column} has no type of its items")
        return {"type": "array", "items": ["null", avro_type(items, dialect, column)]}
    if kind.this is _T.SET:
        return {"type": "array", "items": "string"}
    if kind.this is _T.DECIMAL:
        return _decimal(kind, dialect)
    if kind.this is _T.FLOAT and dialect == "postgres":
        return "double"  # real or float, which is PostgreSQL's double precision
    if kind.this is _T.TIME:
        # MySQL's may be negative and longer than a day.
        return "long" if dialect == "mysql" else {"type": "long", "logicalType": "time-micros"}
    if kind.this not in _AVRO:
        raise ConversionError(f"the type {kind.sql(dialect)} of column {column} has no Avro type")
    return _AVRO[kind.this]


def _decimal(kind: exp.DataType, dialect: str) -> Any:  # noqa: ANN401 - JSON
    """PostgreSQL's numeric without a precision has no bound, and so no Avro decimal."""
    given = [int(expression.name) if expression.name.isdecimal() else None for expression in kind.expressions]
    if None in given:
        raise ConversionError(f"the type {kind.sql(dialect)} has a precision or a scale that is no whole number")
    if not given and dialect == "postgres":
        return "string"
    precision, scale = (*given, 0)[:2] if given else _MYSQL_DECIMAL
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
