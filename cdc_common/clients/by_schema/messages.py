"""Messages in the Confluent wire format: Avro values under schemas of the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from cachetools import LRUCache
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.schema import SchemaParseException
from fastavro.validation import ValidationError, validate

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.messages import wire
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from cdc_common.clients.registry.schematizer import SchematizerClient

AvroSchema: TypeAlias = str | Mapping[str, Any]
"""JSON, as a text or as Python's values."""
_MOST_PARSED = 1_000


class MisfitError(ValueError):
    """A value does not fit its schema, or a message cannot be read. The text names fields and schemas, no values."""


def schema_text(schema: AvroSchema) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)


class Encoder:
    """Encodes values under one schema of the registry."""

    def __init__(self, schema_id: int, text: str) -> None:
        self.schema_id = schema_id
        self._header = wire.header(schema_id)
        self._schema = _parsed(text)

    def encode(self, value: object) -> bytes:
        """Encode a value; MisfitError if it does not fit the schema. Fields with a default may be missing."""
        reason = self._misfit(value)
        if reason is None:
            buffer = BytesIO(self._header)
            buffer.seek(0, 2)
            try:
                schemaless_writer(buffer, self._schema, value, strict_allow_default=True, disable_tuple_notation=True)
            except (ValueError, TypeError, AttributeError, OverflowError):
                reason = "a record has a field that the schema does not have, or a value is of another type"
            else:
                return buffer.getvalue()
        # Raised here, so that it does not carry fastavro's error: that one shows the value.
        raise MisfitError(f"The value does not fit schema {self.schema_id}: {reason}.")

    def _misfit(self, value: object) -> str | None:
        """fastavro writes numbers that are too large for their type, unless it validates first."""
        try:
            validate(value, self._schema, disable_tuple_notation=True)  # type: ignore[call-arg] # the stub lacks it
        except ValidationError as error:
            names = sorted({problem.field for problem in error.errors if problem.field})
            return ", ".join(names) or "it is of another type"
        return None


class Decoder:
    """Decodes messages by their writers' schemas, resolved to a reader's. One thread uses it."""

    def __init__(self, client: SchematizerClient, reader: str | None = None) -> None:
        """`reader`: without it, values are as their writers' schemas say."""
        self._client = client
        self._reader = None if reader is None else _parsed(reader)
        self._writers: LRUCache[int, Any] = LRUCache(_MOST_PARSED)

    def decode(self, data: bytes) -> tuple[int, Any]:
        """The id of the writer's schema, and the value. MisfitError; RegistryRequestError if the service does not
        answer and the schema is not known yet.
        """
        schema_id = _schema_id(data)
        writer = self._writer(schema_id)
        buffer = BytesIO(data)
        buffer.seek(wire.HEADER_SIZE)
        try:
            value = schemaless_reader(buffer, writer, self._reader)
            problem = "bytes are left" if buffer.read(1) else ""
        except Exception as error:  # noqa: BLE001 - fastavro raises what the bytes make it raise
            problem = type(error).__name__
        if problem:
            raise MisfitError(f"A message under schema {schema_id} cannot be read as the reader's schema: {problem}.")
        return schema_id, value

    def _writer(self, schema_id: int) -> Any:  # noqa: ANN401 - a parsed schema
        writer = self._writers.get(schema_id)
        if writer is None:
            try:
                text = self._client.schema_text(schema_id)
            except RegistryRequestError as error:
                if not error.is_not_found:
                    raise
                raise MisfitError(f"The registry has no schema {schema_id}: the message is of another one.") from error
            writer = self._writers[schema_id] = _parsed(text)
        return writer


def _schema_id(data: bytes) -> int:
    try:
        return wire.schema_id(data)
    except MessageError as error:
        raise MisfitError(f"The message cannot be read: {error}.") from error


def _parsed(text: str) -> Any:  # noqa: ANN401 - a parsed schema
    try:
        return parse_schema(json.loads(text))
    except (ValueError, SchemaParseException) as error:
        raise MisfitError(f"This is no Avro schema: {error}.") from error
