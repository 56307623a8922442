"""Change messages: an Avro key record and the Debezium envelope (docs/formats/messages.md)."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from fastavro import parse_schema, schemaless_writer

from cassandra_storage.errors import FormatError
from cassandra_storage.schema import ColumnKind, ColumnMetadata, TableMetadata
from cdc_messages import wire
from cdc_messages.avro_types import AvroTypes, field
from cdc_messages.avro_values import EmptyValueError
from cdc_messages.errors import MessageError
from cdc_messages.names import avro_names, namespace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_messages.avro_values import Converter
    from cdc_messages.changes import RowChange, RowImage, Source

CONNECTOR = "cassandra"
try:
    VERSION = version("cassandra-cdc-materializer")
except PackageNotFoundError:  # run from a source tree that was not installed
    VERSION = "unknown"


class _Column(NamedTuple):
    """How a column is written: its field, the field's branch of a union with null (None: not a union)."""

    cql_name: str
    name: str
    branch: str | None
    convert: Converter


def key_schema(table: TableMetadata, prefix: str) -> dict[str, Any]:
    """The key: a record of the primary key's columns. It does not depend on any other column."""
    return _key(table, prefix)[0]


def value_schema(table: TableMetadata, prefix: str) -> dict[str, Any]:
    """The value: the envelope with a record of all columns, the key's first."""
    return _envelope(table, prefix)[0]


def schema_text(schema: dict[str, Any]) -> str:
    """The text under which a schema is registered and looked up: the same for the same schema."""
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


def partition_key_values(table: TableMetadata, key: bytes) -> list[bytes]:
    """The values of a serialized partition key: of one column it is the value itself, of several a CompositeType
    (for each 2 bytes of length, the value, 0x00).
    """
    count = len(table.partition_key)
    if count == 1:
        return [key]
    values = []
    position = 0
    for _ in range(count):
        start = position + 2
        position = start + int.from_bytes(key[position:start], "big") + 1
        if position > len(key):
            raise FormatError("a partition key that ends too early", position=start)
        values.append(key[start : position - 1])
    if position != len(key):
        raise FormatError("bytes after a partition key's last value", position=position)
    return values


class ChangeEncoder:
    """Encodes the changes of one table under one pair of registered schemas.

    key_schema_id, value_schema_id: the registry's ids of schema_text(key_schema(…)), schema_text(value_schema(…)).
    """

    def __init__(
        self, table: TableMetadata, *, prefix: str, cluster: str, key_schema_id: int, value_schema_id: int
    ) -> None:
        self._table = table
        self._key_header, self._value_header = wire.header(key_schema_id), wire.header(value_schema_id)
        key, self._key_columns = _key(table, prefix)
        value, columns = _envelope(table, prefix)
        self._key_schema, self._value_schema = parse_schema(key), parse_schema(value)
        self._columns = {column.cql_name: column for column in columns}
        self._row = f"{_namespace(table, prefix)}.Value"
        self._source: dict[str, object] = {
            "version": VERSION,
            "connector": CONNECTOR,
            "name": prefix,
            "snapshot": "false",
            "cluster": cluster,
            "keyspace": table.keyspace,
            "table": table.name,
        }

    def encode(self, change: RowChange, ts_ms: int | None) -> tuple[bytes, bytes]:
        """The change's message, key and value; `ts_ms` is when it was made.

        MessageError if a value is not one of its column's type, or if the key has an empty value that Avro cannot say.
        """
        key = self._key(change)
        empty: list[str] = []
        record: dict[str, object] = {
            "before": self._image("before", change.before, key, empty),
            "after": self._image("after", change.after, key, empty),
            "source": self._source_record(change.source, change.row_sequence, empty),
            "op": change.op,
            "ts_ms": None if ts_ms is None else ("long", ts_ms),
        }
        return self._write_key(key), _write(self._value_header, self._value_schema, record)

    def tombstone(self, change: RowChange) -> tuple[bytes, None]:
        """What follows a delete: the same key without a value, which compaction takes as the end of the key."""
        return self._write_key(self._key(change)), None

    def _write_key(self, key: dict[str, object]) -> bytes:
        return _write(self._key_header, self._key_schema, key)

    def _key(self, change: RowChange) -> dict[str, object]:
        """The fields of the primary key, the same in the key and in the rows."""
        values: list[bytes | None] = [*_partition_key(self._table, change.partition_key)]
        values += change.clustering if change.clustering is not None else [None] * len(self._table.clustering)
        if len(values) != len(self._key_columns):
            raise MessageError(f"a clustering of {len(change.clustering or ())} values in {self._table.qualified_name}")
        record: dict[str, object] = {}
        for (cql_name, name, branch, convert), value in zip(self._key_columns, values, strict=True):
            if value is not None:
                converted = _key_value(cql_name, convert, value)
                record[name] = converted if branch is None else (branch, converted)
            elif branch is None:
                raise MessageError(f"null in key column {cql_name}")
        return record

    def _image(
        self, which: str, image: RowImage | None, key: dict[str, object], empty: list[str]
    ) -> tuple[str, dict[str, object]] | None:
        if image is None:
            return None
        record = key.copy()
        for cql_name, value in image.items():
            try:
                _, name, branch, convert = self._columns[cql_name]
                record[name] = (branch, convert(value))
            except EmptyValueError:
                empty.append(f"{which}.{name}")
            except (KeyError, FormatError, MessageError) as error:
                raise _bad_value(cql_name, error) from error
        return self._row, record

    def _source_record(self, source: Source, row_sequence: int, empty: list[str]) -> dict[str, object]:
        return {
            **self._source,
            "ts_ms": source.ts_us // 1000,
            "ts_us": source.ts_us,
            "host": str(UUID(bytes=source.host)),
            "file": source.file,
            "pos": source.position,
            "cause": source.cause,
            "row_sequence": row_sequence,
            "empty": empty,
        }


def _write(header: bytes, schema: Any, record: dict[str, object]) -> bytes:  # noqa: ANN401  fastavro's parsed schema
    out = BytesIO()
    out.write(header)
    schemaless_writer(out, schema, record)
    return out.getvalue()


def _partition_key(table: TableMetadata, key: bytes) -> list[bytes]:
    try:
        return partition_key_values(table, key)
    except FormatError as error:
        raise MessageError(f"{table.qualified_name}: {error}") from error


def _key_value(cql_name: str, convert: Converter, value: bytes) -> object:
    try:
        return convert(value)
    except EmptyValueError:
        raise MessageError(f"empty value in key column {cql_name}, whose Avro type has none") from None
    except (FormatError, MessageError) as error:
        raise _bad_value(cql_name, error) from error


def _bad_value(cql_name: str, error: Exception) -> MessageError:
    reason = "no such column" if isinstance(error, KeyError) else str(error)
    return MessageError(f"column {cql_name}: {reason}")


def _namespace(table: TableMetadata, prefix: str) -> str:
    return namespace(prefix, table.keyspace, table.name)


def _key(table: TableMetadata, prefix: str) -> tuple[dict[str, Any], list[_Column]]:
    fields, columns = _fields(table, _namespace(table, prefix), table.partition_key + table.clustering)
    return _record("Key", _namespace(table, prefix), fields), columns


def _envelope(table: TableMetadata, prefix: str) -> tuple[dict[str, Any], list[_Column]]:
    of = _namespace(table, prefix)
    fields, columns = _fields(table, of, table.columns)
    row = _record("Value", of, fields)
    envelope: list[dict[str, Any]] = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", f"{of}.Value"], "default": None},
        {"name": "source", "type": _source_schema(of)},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return _record("Envelope", of, envelope), columns


def _record(name: str, of: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": of, "fields": fields}


def _fields(
    table: TableMetadata, of: str, columns: Iterable[ColumnMetadata]
) -> tuple[list[dict[str, Any]], list[_Column]]:
    names = _field_names(table)
    types = AvroTypes(of)
    schemas, described = [], []
    for column in columns:
        name = names[column.name]
        avro_type = types.column(name, column.type)
        is_nullable = _is_nullable(table, column)
        schemas.append(field(column.name, name, column.type, avro_type.schema, is_nullable=is_nullable))
        branch = avro_type.branch if is_nullable else None
        described.append(_Column(column.name, name, branch, avro_type.convert))
    return schemas, described


def _field_names(table: TableMetadata) -> dict[str, str]:
    """The key's names first, so that no other column can change them: a key's schema never evolves."""
    key = avro_names(column.name for column in table.partition_key + table.clustering)
    others = (column.name for column in table.static_columns + table.regular_columns)
    return key | avro_names(others, taken=frozenset(key.values()))


def _is_nullable(table: TableMetadata, column: ColumnMetadata) -> bool:
    """The row of a partition that has only statics has no clustering."""
    if column.kind is ColumnKind.CLUSTERING:
        return bool(table.static_columns)
    return column.kind is not ColumnKind.PARTITION_KEY


def _source_schema(of: str) -> dict[str, Any]:
    return _record(
        "Source",
        of,
        [
            {"name": "version", "type": "string"},
            {"name": "connector", "type": "string"},
            {"name": "name", "type": "string"},
            {"name": "ts_ms", "type": "long"},
            {"name": "ts_us", "type": "long"},
            {"name": "snapshot", "type": "string", "default": "false"},
            {"name": "cluster", "type": "string"},
            {"name": "keyspace", "type": "string"},
            {"name": "table", "type": "string"},
            {"name": "host", "type": "string"},
            {"name": "file", "type": "string"},
            {"name": "pos", "type": "long"},
            {"name": "cause", "type": "string"},
            {"name": "row_sequence", "type": "long"},
            {"name": "empty", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    )
