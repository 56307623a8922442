"""The result of a converter, and the interface of converters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class ConversionError(ValueError):
    """The description cannot be converted; the message says which part and why."""


@dataclass(frozen=True, slots=True)
class FieldDocumentation:
    """The documentation of one field. None says nothing."""

    # The documentation.
    doc: str | None = None
    # The owner.
    owner: str | None = None
    # Whether its values are personal data.
    is_pii: bool | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of converting a description."""

    # The table's name; None if the description has none.
    source: str | None
    # The Avro schema of values, as a JSON text.
    value: str
    # The Avro schema of keys, as a JSON text; None where messages have no key.
    key: str | None = None
    # The names of the primary key's fields, in order; empty if it is not known.
    primary_key: tuple[str, ...] = ()
    # The documentation of the source.
    doc: str | None = None
    # The owner of the source.
    owner: str | None = None
    # The documentation of fields, by path.
    fields: Mapping[str, FieldDocumentation] = field(default_factory=dict)

    def value_with_key(self) -> str:
        """The value's schema with the property primaryKey, which the format avro reads."""
        return json.dumps({**json.loads(self.value), "primaryKey": list(self.primary_key)}, ensure_ascii=False)


class Converter(Protocol):
    """A format of descriptions. Others than the ones here are found by the entry point group
    `cassandra_schematizer.converters`: a name of a format, and an object with this method.
    """

    def convert(self, text: str, namespace: str) -> Converted:
        """The description of one table, for a namespace of the catalogue; ConversionError."""
        ...
