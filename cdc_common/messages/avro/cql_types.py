"""The Avro type of each CQL type (see the table in docs/reference/data-types.md). Only empty values are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cassandra_storage.formats.types.cql_types import type_text
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from cdc_common.messages.avro import cql_values as avro_values
from cdc_common.messages.avro.cql_values import Encoder
from cdc_common.messages.avro.names import avro_name, avro_names, namespace
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping


AvroSchema: TypeAlias = "str | dict[str, Any] | list[Any]"

SHARED_NAMESPACE = "cassandra_cdc"
_DECIMAL = {
    "type": "record",
    "name": "Decimal",
    "namespace": SHARED_NAMESPACE,
    "doc": "unscaled * 10 ** -scale",
    "cqlType": "decimal",
    "fields": [
        {"name": "unscaled", "type": "bytes", "doc": "two's complement, big-endian"},
        {"name": "scale", "type": "int"},
    ],
}
_DURATION = {
    "type": "record",
    "name": "Duration",
    "namespace": SHARED_NAMESPACE,
    "doc": "months, days and nanoseconds, which do not convert into each other; all of one sign",
    "cqlType": "duration",
    "fields": [
        {"name": "months", "type": "int"},
        {"name": "days", "type": "int"},
        {"name": "nanos", "type": "long"},
    ],
}
_NATIVE: dict[str, str | dict[str, Any]] = {
    "ascii": {"type": "string", "cqlType": "ascii"},
    "text": "string",
    "tinyint": {"type": "int", "cqlType": "tinyint"},
    "smallint": {"type": "int", "cqlType": "smallint"},
    "int": "int",
    "bigint": "long",
    "counter": {"type": "long", "cqlType": "counter"},
    "boolean": "boolean",
    "float": "float",
    "double": "double",
    "blob": "bytes",
    "varint": {"type": "bytes", "cqlType": "varint"},
    "uuid": {"type": "string", "logicalType": "uuid"},
    "timeuuid": {"type": "string", "logicalType": "uuid", "cqlType": "timeuuid"},
    "timestamp": {"type": "long", "logicalType": "timestamp-millis"},
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "cqlType": "time"},
    "decimal": _DECIMAL,
    "duration": _DURATION,
    "inet": {"type": "string", "cqlType": "inet"},
    "empty": {"type": "bytes", "cqlType": "empty"},
}
_STRINGS = (NativeType("text"), NativeType("ascii"))


class AvroType(NamedTuple):
    """`schema`: as used at this place; a record that was defined earlier is only its full name."""

    schema: AvroSchema
    encode: Encoder


class AvroTypes:
    """The types of one schema. A named type is defined at its first use; later uses have only its name.

    Records are named so that no other column can change their names: a user type is `<namespace>.types.<name>`, a
    tuple `<namespace>.columns.<path>.Tuple`, a map's entry `<namespace>.columns.<path>.Entry`, where the path is the
    column and `element`, `key`, `value` or the field on the way down. Inside a user type the path starts at the type.
    """

    def __init__(self, avro_namespace: str) -> None:
        self._namespace = avro_namespace
        self._user_types: dict[str, tuple[str, tuple[str, ...], tuple[CqlType, ...]]] = {}
        self._shared: set[str] = set()

    def column(self, name: str, cql_type: CqlType) -> AvroType:
        """The type of a column, by its Avro name."""
        return self._type(cql_type, namespace(self._namespace, "columns", name))

    def _type(self, cql_type: CqlType, path: str) -> AvroType:
        match cql_type:
            case NativeType(name):
                return self._native(name)
            case CustomType(class_name):
                return AvroType({"type": "bytes", "cqlType": f"'{class_name}'"}, avro_values.NATIVE_ENCODERS["blob"])
            case TupleType(types):
                return self._tuple(types, path)
            case UserType():
                return self._user_type(cql_type)
            case MapType():
                return self._map(cql_type, path)
            case _:
                return self._array(cql_type, path)

    def _native(self, name: str) -> AvroType:
        if name not in _NATIVE:
            raise MessageError(f"CQL type {name} has no Avro type")
        schema = _NATIVE[name]
        if isinstance(schema, dict) and schema["type"] == "record":
            full_name = f"{schema['namespace']}.{schema['name']}"
            schema = full_name if full_name in self._shared else schema
            self._shared.add(full_name)
        return AvroType(schema, avro_values.NATIVE_ENCODERS[name])

    def _array(self, cql_type: ListType | SetType | VectorType, path: str) -> AvroType:
        element = self._type(cql_type.elements, f"{path}.element")
        schema: dict[str, Any] = {"type": "array", "items": element.schema}
        match cql_type:
            case VectorType(_, dimension):
                schema |= {"cqlType": "vector", "dimension": dimension}
                return AvroType(schema, avro_values.vector(cql_type, element.encode))
            case ListType(_, is_multi_cell):
                make = avro_values.list_cells if is_multi_cell else avro_values.frozen_list
            case SetType(_, is_multi_cell):
                schema["cqlType"] = "set"
                make = avro_values.set_cells if is_multi_cell else avro_values.frozen_list
        return AvroType(schema, make(element.encode))

    def _map(self, cql_type: MapType, path: str) -> AvroType:
        key, value = self._type(cql_type.keys, f"{path}.key"), self._type(cql_type.values, f"{path}.value")
        encode = (avro_values.map_cells if cql_type.is_multi_cell else avro_values.frozen_map)(key.encode, value.encode)
        if cql_type.keys in _STRINGS:
            return AvroType({"type": "map", "values": value.schema}, encode)
        fields = [{"name": "key", "type": key.schema}, {"name": "value", "type": value.schema}]
        entry = {"type": "record", "name": "Entry", "namespace": path, "fields": fields}
        return AvroType({"type": "array", "items": entry, "cqlType": "map"}, encode)

    def _tuple(self, types: tuple[CqlType, ...], path: str) -> AvroType:
        schemas, encoders = self._fields({f"f{index}": field_type for index, field_type in enumerate(types)}, path)
        schema = {"type": "record", "name": "Tuple", "namespace": path, "cqlType": "tuple", "fields": schemas}
        return AvroType(schema, avro_values.frozen_record(encoders))

    def _user_type(self, cql_type: UserType) -> AvroType:
        types, name = namespace(self._namespace, "types"), avro_name(cql_type.name)
        full_name = f"{types}.{name}"
        is_known = full_name in self._user_types
        definition = (cql_type.name, cql_type.field_names, cql_type.field_types)
        if self._user_types.setdefault(full_name, definition) != definition:
            raise MessageError(f"two user types {cql_type.name} that differ, in one table")
        field_types = dict(zip(cql_type.field_names, cql_type.field_types, strict=True))
        schemas, encoders = self._fields(field_types, full_name)
        make = avro_values.record_cells if cql_type.is_multi_cell else avro_values.frozen_record
        if is_known:
            return AvroType(full_name, make(encoders))
        schema = {"type": "record", "name": name, "namespace": types, "cqlName": cql_type.name, "fields": schemas}
        return AvroType(schema, make(encoders))

    def _fields(self, types: Mapping[str, CqlType], path: str) -> tuple[list[dict[str, Any]], list[Encoder]]:
        """The nullable fields of a tuple or user type: their schemas and encoders."""
        names = avro_names(types)
        schemas, encoders = [], []
        for cql_name, cql_type in types.items():
            avro_type = self._type(cql_type, f"{path}.{names[cql_name]}")
            schemas.append(field(cql_name, names[cql_name], cql_type, avro_type.schema, is_nullable=True))
            encoders.append(avro_type.encode)
        return schemas, encoders


def field(cql_name: str, name: str, cql_type: CqlType, schema: AvroSchema, *, is_nullable: bool) -> dict[str, Any]:
    """The field of a column. A nullable field is null if the writer's schema does not have it."""
    described: dict[str, Any] = {"name": name, "type": schema, "cqlType": type_text(cql_type)}
    if is_nullable:
        described |= {"type": ["null", schema], "default": None}
    if name != cql_name:
        described["cqlName"] = cql_name
    return described
