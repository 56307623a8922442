"""The converter of Avro schemas: the schema as it is."""

from __future__ import annotations

import json

from schematizer.avro_schemas import elements
from schematizer.avro_schemas.parsing import InvalidSchemaError, parse
from schematizer.converters.converted import ConversionError, Converted, FieldDocumentation


class AvroConverter:
    """The text is a schema. Its record may have the properties `owner` and `primaryKey` (a list of fields), its fields
    `owner` and `pii` (true or false).
    """

    def convert(self, text: str, namespace: str) -> Converted:  # noqa: ARG002 - Converter's
        try:
            canonical = parse(text).canonical
        except InvalidSchemaError as error:
            raise ConversionError(f"invalid schema: {error}") from error
        schema = json.loads(canonical)
        if not isinstance(schema, dict) or schema["type"] != "record":
            return Converted(None, canonical)
        fields = {
            field["name"]: FieldDocumentation(field.get("doc"), _text(field.get("owner")), _flag(field.get("pii")))
            for field in schema["fields"]
        }
        return Converted(
            schema["name"],
            canonical,
            None,
            _primary_key(schema),
            elements.document(canonical),
            _text(schema.get("owner")),
            {path: field for path, field in fields.items() if field != FieldDocumentation()},
        )


def _primary_key(schema: dict[str, object]) -> tuple[str, ...]:
    key = schema.get("primaryKey", [])
    if not isinstance(key, list) or not all(isinstance(name, str) for name in key):
        raise ConversionError("primaryKey is not a list of names of fields")
    names = {field["name"] for field in schema["fields"]}  # type: ignore[attr-defined] # a canonical record has a list
    unknown = [name for name in key if name not in names]
    if unknown:
        raise ConversionError(f"primaryKey names {', '.join(unknown)}, which the record does not have")
    return tuple(key)


def _text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ConversionError(f"the owner {value!r} is not a text")
    return value


def _flag(value: object) -> bool | None:
    if value is not None and not isinstance(value, bool):
        raise ConversionError(f"the property pii is {value!r}, not true or false")
    return value
