"""The columns of a table: their numbers and types, as Iceberg writes schemas in JSON.

Each column at each level has a number, which files name, so that a reader finds it whatever it is called. A list of
columns only grows: fields are added or renamed, and integers, floats and decimals become wider. A renamed column keeps
its number and, as `former`, its names before.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from archive.writer.aliases import aliases_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

Field = dict[str, Any]
UTC_US = pa.timestamp("us", tz="UTC")
BASE = pa.schema(
    [
        pa.field("_kafka_topic", pa.string(), nullable=False),
        pa.field("_kafka_partition", pa.int32(), nullable=False),
        pa.field("_kafka_offset", pa.int64(), nullable=False),
        pa.field("_kafka_timestamp", UTC_US),
        pa.field("_event_time", UTC_US, nullable=False),
        pa.field("_schema_id", pa.int64()),
        pa.field("_kafka_key", pa.binary()),
        pa.field("_kafka_value", pa.binary()),
    ]
)
"""The columns that every table has, with the numbers 1 to 8."""
EVENT_TIME_ID = 5
_WIDER = {("int", "long"), ("float", "double")}
_DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")
_SCALARS = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.time64("us"): "time",
    pa.timestamp("us"): "timestamp",
    UTC_US: "timestamptz",
}


class NotInTableError(Exception):
    """Columns that a table cannot have. `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class IncompatibleError(NotInTableError):
    """Columns that this table cannot have beside its own, but another one can."""


class Columns(NamedTuple):
    """The columns of a table."""

    # The columns, as Iceberg's JSON has them.
    fields: tuple[Field, ...]
    # The highest number of a column at any level.
    last_id: int

    def as_json(self) -> dict[str, Any]:
        return {"type": "struct", "fields": list(self.fields), "last-column-id": self.last_id}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Columns:
        return cls(tuple(stored["fields"]), stored["last-column-id"])

    def merged(self, schema: pa.Schema) -> Columns:
        """With the columns of a schema. IncompatibleError, NotInTableError."""
        merging = _Merging(self.last_id)
        fields = deepcopy(list(self.fields))
        merging.merge_fields(fields, schema, "")
        return Columns(tuple(fields), merging.last_id)

    def numbered(self, schema: pa.Schema) -> pa.Schema:
        """The schema with the numbers of the columns, which it has all."""
        return pa.schema(_numbered_fields(schema, self.fields))

    def names(self) -> dict[int, set[str]]:
        """By number, the name of each column at each level, and its former names."""
        return dict(_names({"type": "struct", "fields": self.fields}))

    def as_iceberg(self) -> list[Field]:
        """The columns without what only the archive knows."""
        return [_plain_field(field) for field in self.fields]


NO_COLUMNS = Columns((), 0)
BASE_COLUMNS: Columns


def stored_type(kind: pa.DataType) -> pa.DataType:
    """The type with which a column is stored. Values keep all their bits. NotInTableError."""
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            raise NotInTableError("it has a record without fields")
        return pa.struct([_stored_field(field) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, _stored_field(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_stored_field(kind.value_field))
    return _stored_scalar(kind)


def _stored_scalar(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_timestamp(kind):
        return pa.int64() if kind.unit == "ns" else pa.timestamp("us", kind.tz)
    return kind


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with stored types. NotInTableError."""
    return pa.schema([_stored_field(field) for field in schema])


def _stored_field(field: pa.Field) -> pa.Field:
    return field.with_type(stored_type(field.type))


class _Merging:
    def __init__(self, last_id: int) -> None:
        self.last_id = last_id

    def merge_fields(self, fields: list[Field], wanted: Any, where: str) -> None:  # noqa: ANN401 - a schema or a struct
        names = {field.name for field in wanted}
        for field in wanted:
            known = _find(fields, field, names)
            if known is None:
                fields.append(self._new_field(field))
                continue
            if field.name not in {known["name"], *known.get("former", ())}:
                known["former"] = [*known.get("former", ()), known["name"]]
                known["name"] = field.name
            known["type"] = self._merge(known["type"], field.type, f"{where}{field.name}")

    def _merge(self, known: Any, wanted: pa.DataType, path: str) -> Any:  # noqa: ANN401 - JSON
        kind = known["type"] if isinstance(known, dict) else None
        if kind == "struct" and pa.types.is_struct(wanted):
            self.merge_fields(known["fields"], wanted, f"{path}.")
        elif kind == "list" and pa.types.is_list(wanted):
            known["element"] = self._merge(known["element"], wanted.value_type, f"{path}[]")
        elif kind == "map" and pa.types.is_map(wanted):
            known["value"] = self._merge(known["value"], wanted.item_type, f"{path}{{}}")
        elif kind is None and not pa.types.is_nested(wanted):
            return _wider(known, _scalar(wanted), path)
        else:
            raise IncompatibleError(f"the field {path} is {_kind(wanted)} and was {kind or known}")
        return known

    def _new_field(self, field: pa.Field) -> Field:
        number = self._next_id()
        return {"id": number, "name": field.name, "required": False, "type": self._new_type(field.type)}

    def _new_type(self, kind: pa.DataType) -> Any:  # noqa: ANN401 - JSON
        if pa.types.is_struct(kind):
            return {"type": "struct", "fields": [self._new_field(field) for field in kind]}
        if pa.types.is_map(kind):
            key, value = self._next_id(), self._next_id()
            inner = self._new_type(kind.item_type)
            return {
                "type": "map",
                "key-id": key,
                "key": "string",
                "value-id": value,
                "value": inner,
                "value-required": False,
            }
        if pa.types.is_list(kind):
            number = self._next_id()
            return {
                "type": "list",
                "element-id": number,
                "element": self._new_type(kind.value_type),
                "element-required": False,
            }
        return _scalar(kind)

    def _next_id(self) -> int:
        self.last_id += 1
        return self.last_id


def _kind(kind: pa.DataType) -> str:
    return str(kind).partition("<")[0]


def _scalar(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    return _SCALARS[kind]


def _wider(known: str, wanted: str, path: str) -> str:
    """The type that holds the values of both."""
    if known == wanted or (wanted, known) in _WIDER:
        return known
    if (known, wanted) in _WIDER:
        return wanted
    before, now = _DECIMAL.fullmatch(known), _DECIMAL.fullmatch(wanted)
    if before and now and before[2] == now[2]:
        return known if int(before[1]) >= int(now[1]) else wanted
    raise IncompatibleError(f"the field {path} is {wanted} and was {known}")


def _find(fields: Sequence[Field], wanted: pa.Field, names: Collection[str]) -> Field | None:
    """The column of a field: of its name, of its former one, or the renamed one of its alias. names: those of the
    record's fields; each field has a column of its own.
    """
    by_name = {field["name"]: field for field in fields}
    if wanted.name in by_name:
        return by_name[wanted.name]
    for field in fields:
        if wanted.name in field.get("former", ()) and field["name"] not in names:
            return field
    aliases = [alias for alias in aliases_of(wanted) if alias in by_name and alias not in names]
    return by_name[aliases[0]] if aliases else None


def _numbered_fields(fields: Any, known: Sequence[Field]) -> list[pa.Field]:  # noqa: ANN401 - a schema or a struct
    names = {field.name for field in fields}
    made = []
    for field in fields:
        found = _find(known, field, names)
        assert found is not None, f"the list of columns lacks {field.name}"
        made.append(_numbered(field, found["id"], found["type"]))
    return made


def _numbered(field: pa.Field, number: int, known: Any) -> pa.Field:  # noqa: ANN401 - JSON
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct(_numbered_fields(kind, known["fields"]))
    elif pa.types.is_map(kind):
        key = _numbered(kind.key_field, known["key-id"], known["key"])
        kind = pa.map_(key, _numbered(kind.item_field, known["value-id"], known["value"]))
    elif pa.types.is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, known["element-id"], known["element"]))
    return pa.field(field.name, kind, field.nullable, {b"PARQUET:field_id": str(number).encode()})


def _names(kind: Any) -> Iterator[tuple[int, set[str]]]:  # noqa: ANN401 - JSON
    if not isinstance(kind, dict):
        return
    for field in kind.get("fields", ()):
        yield field["id"], {field["name"], *field.get("former", ())}
        yield from _names(field["type"])
    for part in ("element", "key", "value"):
        if part in kind:
            yield kind[f"{part}-id"], {part}
            yield from _names(kind[part])


def _plain_field(field: Field) -> Field:
    return {name: _plain_type(value) for name, value in field.items() if name != "former"}


def _plain_type(kind: Any) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(kind, dict):
        return kind
    made = {name: _plain_type(value) for name, value in kind.items()}
    if "fields" in kind:
        made["fields"] = [_plain_field(field) for field in kind["fields"]]
    return made


BASE_COLUMNS = NO_COLUMNS.merged(BASE)
"""The columns that every table has."""
