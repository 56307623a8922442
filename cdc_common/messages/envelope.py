"""Change messages: an Avro key record and the Debezium envelope (docs/reference/change-events.md)."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from time import time_ns
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.partition_keys import partition_key_values
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types import marshal
from cdc_common.messages import wire
from cdc_common.messages.avro.cql_types import AvroTypes, field
from cdc_common.messages.avro.cql_values import EmptyValueError, Encoder
from cdc_common.messages.avro.distinct_keys import Check, distinct_check
from cdc_common.messages.avro.encoding import FALSE, NULL, TRUE, VALUE, encode_array, encode_long, encode_string
from cdc_common.messages.avro.names import avro_names, namespace
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cdc_common.messages.avro.type_forms import TypeForms
    from cdc_common.messages.changes import ColumnImage, RowChange, RowImage

CONNECTOR = "cassandra"
_BEFORE = (encode_string("before"),)
try:
    VERSION = version("cassandra-cdc-materializer")
except PackageNotFoundError:  # run from a source tree that was not installed
    VERSION = "unknown"


class _Part(NamedTuple):
    """A field of a user type or tuple, which is a column of its own: the field's place, of so many."""

    place: int
    size: int

    def of(self, value: ColumnImage) -> bytes | None:
        """The field's value in a column's. EmptyValueError, FormatError."""
        if not isinstance(value, bytes):
            return next((item for path, item in value if int.from_bytes(path, "big") == self.place), None)
        if not value:
            raise EmptyValueError
        return marshal.fields(value, self.size)[self.place]


class _Column(NamedTuple):
    """The encoding of a column. `name` is the name of its field; `is_distinct`: see distinct_check, for a column of the
    partition key. part: of the column, if each of its parts is a field.
    """

    cql_name: str
    name: str
    is_nullable: bool
    encode: Encoder
    is_distinct: Check | None
    part: _Part | None = None


class MessageLayout(NamedTuple):
    """The parts that are the same in all messages of a ChangeEncoder."""

    # The wire format's header of keys.
    key_header: bytes
    # The wire format's header of values.
    value_header: bytes
    # The Avro bytes of `source` up to `ts_ms`.
    source_start: bytes
    # The Avro bytes of `source` from `snapshot` to `table`, for changes from the log.
    source_table: bytes
    # The Avro bytes of `source` from `snapshot` to `table`, for changes from a snapshot.
    snapshot_source_table: bytes
    # Whether clustering columns are null in the row of a Cassandra partition with only statics.
    is_clustering_nullable: bool
    # The names of the Avro fields, by column.
    names: dict[str, str]


class EncodedMessage(NamedTuple):
    """A change's message."""

    # The key in the wire format.
    key: bytes
    # The value in the wire format.
    value: bytes
    # How many fields of `after` are null because their value is empty, which Avro cannot represent.
    empty: int = 0
    # How many are null because the column's form cannot represent their value (docs/reference/data-types.md).
    unreadable: int = 0


class _UnrepresentableFields(NamedTuple):
    """The names (as encoded strings) of fields that are null because Avro cannot represent their value: it is empty, or
    not a value of its type, which Cassandra sometimes accepts (docs/reference/data-types.md).
    """

    empty: list[bytes]
    unreadable: list[bytes]


def key_schema(table: TableMetadata, prefix: str, forms: TypeForms) -> dict[str, Any]:
    """The key: a record of the primary key's columns. It depends on no other column."""
    avro_namespace = _namespace(table, prefix)
    key = table.partition_key + table.clustering
    return _record("Key", avro_namespace, _fields(table, avro_namespace, key, forms)[0])


def value_schema(table: TableMetadata, prefix: str, forms: TypeForms) -> dict[str, Any]:
    """The value: the envelope with a record of all columns, the key's first."""
    avro_namespace = _namespace(table, prefix)
    row = _record("Value", avro_namespace, _fields(table, avro_namespace, table.columns, forms)[0])
    fields: list[dict[str, Any]] = [
        {"name": "before", "type": ["null", row], "default": None},
        {"name": "after", "type": ["null", f"{avro_namespace}.Value"], "default": None},
        {"name": "source", "type": _source_schema(avro_namespace)},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return _record("Envelope", avro_namespace, fields)


def schema_text(schema: dict[str, Any]) -> str:
    """The text of a schema in the registry: equal schemas have equal texts."""
    return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)


class ChangeEncoder:
    """Encodes the changes of one table under one pair of registered schemas.

    key_schema_id, value_schema_id: the registry's ids of key_schema(table, prefix, forms) and value_schema(…).
    cluster: the Cassandra cluster's name, for `source`.
    """

    def __init__(  # noqa: PLR0913 - what a message is made of
        self,
        table: TableMetadata,
        prefix: str,
        key_schema_id: int,
        value_schema_id: int,
        cluster: str = "",
        *,
        forms: TypeForms,
    ) -> None:
        self.forms = forms
        self._table = table
        self._key_header, self._value_header = wire.header(key_schema_id), wire.header(value_schema_id)
        columns = _fields(table, _namespace(table, prefix), table.columns, forms)[1]
        key_size = len(table.partition_key) + len(table.clustering)
        self._key_columns, self._columns = columns[:key_size], columns[key_size:]
        self._names = frozenset(column.cql_name for column in self._columns)
        self._source_start = b"".join(map(encode_string, (VERSION, CONNECTOR, prefix)))
        self._source_table, self._snapshot_source_table = (
            b"".join(map(encode_string, (snapshot, cluster, table.keyspace, table.name)))
            for snapshot in ("false", "true")
        )
        self._file: tuple[bytes, str] = (b"", "")
        self._source_file = b""

    @property
    def layout(self) -> MessageLayout | None:
        """None if the core does not write the messages: parts of a column are fields."""
        if any(column.part is not None for column in self._columns):
            return None
        return MessageLayout(
            self._key_header,
            self._value_header,
            self._source_start,
            self._source_table,
            self._snapshot_source_table,
            any(column.is_nullable for column in self._key_columns),
            {column.cql_name: column.name for column in self._columns},
        )

    def leaves_out(self, change: RowChange) -> bool:
        """Whether the change has no message: of the row of a partition with only statics, unless they are included."""
        return change.clustering is None and self.forms.static_rows == "leave_out"

    def encode(
        self, change: RowChange, ts_ms: int | None = None, *, without_before: bool = False
    ) -> EncodedMessage | None:
        """The change's message. `ts_ms` is when the message was made, by default now. `without_before`
        omits `before` and names it in `left_out`.

        None if Avro cannot represent the row's key: an empty value of a type without one, a null of a compact table,
        a value that is not of its type, or one that another Cassandra partition's key would share its Avro form with
        (distinct_keys). MessageError if the change is not one of this table.
        """
        key = self._key(change)
        if key is None:
            return None
        unrepresentable = _UnrepresentableFields([], [])
        left_out = _BEFORE if without_before and change.before is not None else ()
        before = self._image("before", None if left_out else change.before, key, unrepresentable)
        counts_before = [len(names) for names in unrepresentable]
        value = (
            self._value_header,
            before,
            self._image("after", change.after, key, unrepresentable),
            self._source(change, unrepresentable, left_out),
            encode_string(change.op),
            VALUE,
            encode_long(time_ns() // 1_000_000 if ts_ms is None else ts_ms),
        )
        counts = (len(names) - count for names, count in zip(unrepresentable, counts_before, strict=True))
        return EncodedMessage(self._key_header + key, b"".join(value), *counts)

    def _key(self, change: RowChange) -> bytes | None:
        """The fields of the primary key: the whole key, and the start of each row."""
        values: list[bytes | None] = [*_partition_key(self._table, change.partition_key)]
        values += change.clustering if change.clustering is not None else [None] * len(self._table.clustering)
        if len(values) != len(self._key_columns):
            raise MessageError(f"a clustering of {len(change.clustering or ())} values in {self._table.qualified_name}")
        is_static_only = change.clustering is None
        fields = []
        for column, value in zip(self._key_columns, values, strict=True):
            encoded = _key_field(column, value, may_be_null=is_static_only)
            if encoded is None:
                return None
            fields.append(encoded)
        return b"".join(fields)

    def _image(self, which: str, image: RowImage | None, key: bytes, unrepresentable: _UnrepresentableFields) -> bytes:
        """The union of null and the row; `unrepresentable` gets the names of fields that Avro cannot represent."""
        if image is None:
            return NULL
        parts = [VALUE, key]
        for cql_name, name, _, encode, _, part in self._columns:
            value = image.get(cql_name)
            try:
                if value is not None and part is not None:
                    value = part.of(value)
                if value is None:
                    parts.append(NULL)
                    continue
                encoded = encode(value)
            except EmptyValueError:
                parts.append(NULL)
                unrepresentable.empty.append(encode_string(f"{which}.{name}"))
            except FormatError:
                parts.append(NULL)
                unrepresentable.unreadable.append(encode_string(f"{which}.{name}"))
            except MessageError as error:
                raise MessageError(f"column {cql_name}: {error}") from error
            else:
                parts += (VALUE, encoded)
        if not self._names.issuperset(image):
            unknown = sorted(image.keys() - self._names)
            raise MessageError(f"columns that {self._table.qualified_name} does not have: {unknown}")
        return b"".join(parts)

    def _source(self, change: RowChange, unrepresentable: _UnrepresentableFields, left_out: Sequence[bytes]) -> bytes:
        """The source record; what rarely changes is kept encoded."""
        source = change.source
        if self._file != (source.host, source.file):
            self._file = (source.host, source.file)
            self._source_file = encode_string(str(UUID(bytes=source.host))) + encode_string(source.file)
        parts = (
            self._source_start,
            encode_long(source.ts_us // 1000),
            encode_long(source.ts_us),
            self._snapshot_source_table if source.snapshot else self._source_table,
            self._source_file,
            encode_long(source.position),
            encode_string(source.cause),
            encode_long(change.row_sequence),
            encode_array(unrepresentable.empty),
            encode_array(unrepresentable.unreadable),
            TRUE if source.incomplete else FALSE,
            encode_array(left_out),
        )
        return b"".join(parts)


def _partition_key(table: TableMetadata, key: bytes) -> list[bytes]:
    try:
        return partition_key_values(table, key)
    except FormatError as error:
        raise MessageError(f"{table.qualified_name}: {error}") from error


def _key_field(column: _Column, value: bytes | None, *, may_be_null: bool) -> bytes | None:
    """None if the key cannot represent the value. Only the row of a partition with only statics may have null."""
    if value is None:
        if not may_be_null:
            return None
        if not column.is_nullable:
            raise MessageError(f"null in key column {column.cql_name}")
        return NULL
    try:
        if column.is_distinct is not None and not column.is_distinct(value):
            return None
        encoded = column.encode(value)
    except (EmptyValueError, FormatError):
        return None
    return VALUE + encoded if column.is_nullable else encoded


def _namespace(table: TableMetadata, prefix: str) -> str:
    return namespace(prefix, table.keyspace, table.name)


def _record(name: str, avro_namespace: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": avro_namespace, "fields": fields}


def _fields(
    table: TableMetadata, avro_namespace: str, columns: Iterable[ColumnMetadata], forms: TypeForms
) -> tuple[list[dict[str, Any]], list[_Column]]:
    names, part_names = _field_names(table, forms)
    types = AvroTypes(avro_namespace, forms)
    made: list[tuple[dict[str, Any], _Column]] = []
    for column in columns:
        if (column.name, 0) in part_names:
            made += _part_fields(column, part_names, types, forms)
        else:
            made.append(_column_field(table, column, names[column.name], types, forms))
    return [schema for schema, _ in made], [described for _, described in made]


def _part_fields(
    column: ColumnMetadata, names: Mapping[tuple[str, int], str], types: AvroTypes, forms: TypeForms
) -> Iterator[tuple[dict[str, Any], _Column]]:
    """The fields of a column that has one for each of its parts."""
    parts = forms.parts_of(column.type) or {}
    for place, (part, part_type) in enumerate(parts.items()):
        name = names[column.name, place]
        avro_type = types.column(name, part_type)
        schema = field(f"{column.name}.{part}", name, part_type, avro_type.schema, is_nullable=True)
        described = _Column(column.name, name, True, avro_type.encode, None, _Part(place, len(parts)))
        yield schema | {"cqlColumn": column.name} | _static(column), described


def _column_field(
    table: TableMetadata, column: ColumnMetadata, name: str, types: AvroTypes, forms: TypeForms
) -> tuple[dict[str, Any], _Column]:
    avro_type = types.column(name, column.type, cql_name=column.name, is_key=_is_of_key(column))
    is_nullable = _is_nullable(table, column, forms)
    schema = field(column.name, name, column.type, avro_type.schema, is_nullable=is_nullable)
    is_distinct = distinct_check(column.type, forms) if column.kind is ColumnKind.PARTITION_KEY else None
    return schema | _static(column), _Column(column.name, name, is_nullable, avro_type.encode, is_distinct)


def _is_of_key(column: ColumnMetadata) -> bool:
    return column.kind in (ColumnKind.PARTITION_KEY, ColumnKind.CLUSTERING)


def _static(column: ColumnMetadata) -> dict[str, bool]:
    return {"static": True} if column.kind is ColumnKind.STATIC else {}


def _field_names(table: TableMetadata, forms: TypeForms) -> tuple[dict[str, str], dict[tuple[str, int], str]]:
    """The fields of columns, and those of the parts of columns, by column and place.

    The key's names first, so that no other column can change them: a key's schema never evolves. Then other columns.
    """
    key = avro_names(column.name for column in table.partition_key + table.clustering)
    others = table.static_columns + table.regular_columns
    names = key | avro_names((column.name for column in others), taken=frozenset(key.values()))
    taken, parts = set(names.values()), {}
    for column in others:
        for place, part in enumerate(forms.parts_of(column.type) or ()):
            wanted = f"{column.name}_{part}"
            name = parts[column.name, place] = avro_names([wanted], taken=frozenset(taken))[wanted]
            taken.add(name)
    return names, parts


def _is_nullable(table: TableMetadata, column: ColumnMetadata, forms: TypeForms) -> bool:
    """The row of a partition with only statics has no clustering, unless it is left out. Dropping the last static does
    not change the key.
    """
    if column.kind is ColumnKind.CLUSTERING:
        if forms.static_rows == "leave_out":
            return False
        dropped = (dropped.column.kind for dropped in table.dropped_columns.values())
        return bool(table.static_columns) or ColumnKind.STATIC in dropped
    return column.kind is not ColumnKind.PARTITION_KEY


def _source_schema(avro_namespace: str) -> dict[str, Any]:
    return _record(
        "Source",
        avro_namespace,
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
            {"name": "unreadable", "type": {"type": "array", "items": "string"}, "default": []},
            {"name": "incomplete", "type": "boolean", "default": False},
            {"name": "left_out", "type": {"type": "array", "items": "string"}, "default": []},
        ],
    )
