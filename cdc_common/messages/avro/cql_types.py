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
    all_types,
)
from cdc_common.messages.avro import cql_values as avro_values
from cdc_common.messages.avro.cql_values import Encoder
from cdc_common.messages.avro.form_values import fixed_decimal, native_encoder, native_form
from cdc_common.messages.avro.json_values import json_encoder
from cdc_common.messages.avro.names import avro_name, avro_names, namespace
from cdc_common.messages.avro.type_forms import MOST_DIGITS, TypeForms
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping


AvroSchema: TypeAlias = "str | dict[str, Any] | list[Any]"

SHARED_NAMESPACE = "cassandra_cdc"
_DECIMAL = {
    "type": "record",
    "name": "Decimal",
    "namespace": SHARED_NAMESPACE,
    "doc": "value * 10 ** -scale",
    "cqlType": "decimal",
    "connect.name": "io.debezium.data.VariableScaleDecimal",
    "fields": [
        {"name": "scale", "type": "int"},
        {"name": "value", "type": "bytes", "doc": "two's complement, big-endian"},
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
_FORMS: dict[tuple[str, str], dict[str, Any]] = {
    ("decimal", "string"): {"type": "string", "cqlType": "decimal"},
    ("decimal", "double"): {"type": "double", "cqlType": "decimal"},
    ("varint", "string"): {"type": "string", "cqlType": "varint"},
    ("varint", "decimal"): {
        "type": "bytes",
        "logicalType": "decimal",
        "precision": MOST_DIGITS,
        "scale": 0,
        "cqlType": "varint",
    },
    ("duration", "text"): {"type": "string", "cqlType": "duration"},
    ("duration", "nanoseconds"): {"type": "long", "cqlType": "duration"},
}
# What Kafka Connect's converters pass on, and its sinks know: of a column alone, since arrays of them are refused.
_CONNECT: dict[tuple[str, str], dict[str, str]] = {
    ("uuid", ""): {"connect.name": "io.debezium.data.Uuid"},
    ("timeuuid", ""): {"connect.name": "io.debezium.data.Uuid"},
    ("time", ""): {"connect.name": "io.debezium.time.NanoTime"},
    ("tinyint", ""): {"connect.type": "int8"},
    ("smallint", ""): {"connect.type": "int16"},
}
_CONNECT_JSON = {"connect.name": "io.debezium.data.Json"}
_STRINGS = (NativeType("text"), NativeType("ascii"))


class AvroType(NamedTuple):
    """The Avro type of a CQL type."""

    # The schema as used at this place. A record that was defined earlier is only its full name.
    schema: AvroSchema
    # Encodes a serialized value, or the (path, value) pairs of a multi-cell type, in Avro.
    encode: Encoder


class AvroTypes:
    """The types of one schema. A named type is defined at its first use; later uses have only its name.

    Records are named so that no other column can change their names: a user type is `<namespace>.types.<name>`, a
    tuple `<namespace>.columns.<path>.Tuple`, a map's entry `<namespace>.columns.<path>.Entry`, where the path is the
    column and `element`, `key`, `value` or the field on the way down. Inside a user type the path starts at the type.
    """

    def __init__(self, avro_namespace: str, forms: TypeForms) -> None:
        self._namespace = avro_namespace
        self._forms = forms
        self._user_types: dict[str, tuple[str, tuple[str, ...], tuple[CqlType, ...]]] = {}
        self._shared: set[str] = set()

    def column(self, name: str, cql_type: CqlType, *, cql_name: str = "", is_key: bool = False) -> AvroType:
        """The type of a column, by its Avro name. cql_name: as the forms have it. is_key: of the primary key."""
        forms = self._forms.for_keys() if is_key else self._forms
        fixed = None if is_key else forms.fixed_of(cql_name, cql_type)
        if fixed is not None and isinstance(cql_type, NativeType):
            schema: dict[str, Any] = {"type": "bytes", "logicalType": "decimal"} | fixed._asdict()
            return AvroType(schema | {"cqlType": cql_type.name}, fixed_decimal(cql_type.name, fixed))
        if forms.is_json(cql_type):
            return _json(cql_type, forms, is_key=is_key)
        found = self._type(cql_type, namespace(self._namespace, "columns", name), forms)
        if isinstance(cql_type, NativeType) and isinstance(found.schema, dict):
            connect = _CONNECT.get((cql_type.name, native_form(cql_type.name, forms)), {})
            return found._replace(schema=found.schema | connect)
        return found

    def _type(self, cql_type: CqlType, path: str, forms: TypeForms) -> AvroType:
        match cql_type:
            case NativeType(name):
                return self._native(name, forms)
            case CustomType(class_name):
                return AvroType({"type": "bytes", "cqlType": f"'{class_name}'"}, avro_values.NATIVE_ENCODERS["blob"])
            case TupleType(types):
                return self._tuple(types, path, forms)
            case UserType():
                return self._user_type(cql_type, forms)
            case MapType():
                return self._map(cql_type, path, forms)
            case _:
                return self._array(cql_type, path, forms)

    def _native(self, name: str, forms: TypeForms) -> AvroType:
        if name not in _NATIVE:
            raise MessageError(f"CQL type {name} has no Avro type")
        schema = _FORMS.get((name, native_form(name, forms)), _NATIVE[name])
        if isinstance(schema, dict) and schema["type"] == "record":
            full_name = f"{schema['namespace']}.{schema['name']}"
            schema = full_name if full_name in self._shared else schema
            self._shared.add(full_name)
        return AvroType(schema, native_encoder(name, forms))

    def _array(self, cql_type: ListType | SetType | VectorType, path: str, forms: TypeForms) -> AvroType:
        element = self._type(cql_type.elements, f"{path}.element", forms)
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

    def _map(self, cql_type: MapType, path: str, forms: TypeForms) -> AvroType:
        key, value = (
            self._type(cql_type.keys, f"{path}.key", forms),
            self._type(cql_type.values, f"{path}.value", forms),
        )
        encode = (avro_values.map_cells if cql_type.is_multi_cell else avro_values.frozen_map)(key.encode, value.encode)
        if cql_type.keys in _STRINGS:
            return AvroType({"type": "map", "values": value.schema}, encode)
        fields = [{"name": "key", "type": key.schema}, {"name": "value", "type": value.schema}]
        entry = {"type": "record", "name": "Entry", "namespace": path, "fields": fields}
        return AvroType({"type": "array", "items": entry, "cqlType": "map"}, encode)

    def _tuple(self, types: tuple[CqlType, ...], path: str, forms: TypeForms) -> AvroType:
        schemas, encoders = self._fields({f"f{index}": of for index, of in enumerate(types)}, path, forms)
        schema = {"type": "record", "name": "Tuple", "namespace": path, "cqlType": "tuple", "fields": schemas}
        return AvroType(schema, avro_values.frozen_record(encoders))

    def _user_type(self, cql_type: UserType, forms: TypeForms) -> AvroType:
        types, name = namespace(self._namespace, "types"), avro_name(cql_type.name)
        full_name = f"{types}.{name}"
        is_known = full_name in self._user_types
        definition = (cql_type.name, cql_type.field_names, cql_type.field_types)
        if self._user_types.setdefault(full_name, definition) != definition:
            raise MessageError(f"two user types {cql_type.name} that differ, in one table")
        field_types = dict(zip(cql_type.field_names, cql_type.field_types, strict=True))
        schemas, encoders = self._fields(field_types, full_name, forms)
        make = avro_values.record_cells if cql_type.is_multi_cell else avro_values.frozen_record
        if is_known:
            return AvroType(full_name, make(encoders))
        schema = {"type": "record", "name": name, "namespace": types, "cqlName": cql_type.name, "fields": schemas}
        return AvroType(schema, make(encoders))

    def _fields(
        self, types: Mapping[str, CqlType], path: str, forms: TypeForms
    ) -> tuple[list[dict[str, Any]], list[Encoder]]:
        """The nullable fields of a tuple or user type: their schemas and encoders."""
        names = avro_names(types)
        schemas, encoders = [], []
        for cql_name, cql_type in types.items():
            avro_type = self._type(cql_type, f"{path}.{names[cql_name]}", forms)
            schemas.append(field(cql_name, names[cql_name], cql_type, avro_type.schema, is_nullable=True))
            encoders.append(avro_type.encode)
        return schemas, encoders


def _json(cql_type: CqlType, forms: TypeForms, *, is_key: bool) -> AvroType:
    """A JSON text. `jsonFields` has the fields of the user types in it, in order: their names are in the values.

    Not as Kafka Connect's JSON in a key: PostgreSQL's `json` cannot be one.
    """
    schema: dict[str, Any] = {"type": "string"} | ({} if is_key else _CONNECT_JSON)
    fields = {
        user_type.name: list(user_type.field_names)
        for user_type in all_types(cql_type)
        if isinstance(user_type, UserType)
    }
    return AvroType(schema | ({"jsonFields": fields} if fields else {}), json_encoder(cql_type, forms))


def field(cql_name: str, name: str, cql_type: CqlType, schema: AvroSchema, *, is_nullable: bool) -> dict[str, Any]:
    """The field of a column. A nullable field is null if the writer's schema does not have it."""
    described: dict[str, Any] = {"name": name, "type": schema, "cqlType": type_text(cql_type)}
    if is_nullable:
        described |= {"type": ["null", schema], "default": None}
    if name != cql_name:
        described["cqlName"] = cql_name
    return described
