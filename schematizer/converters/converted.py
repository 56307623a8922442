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
    """The documentation of one field; None: nothing."""

    doc: str | None = None
    owner: str | None = None
    is_pii: bool | None = None


@dataclass(frozen=True, slots=True)
class Converted:
    """`source`: the table's name, None if the description has none. `value`, `key`: Avro schemas as JSON texts; a key
    where the messages have one. `primary_key`: names of fields in order; empty if it is not known. `fields`: by path.
    """

    source: str | None
    value: str
    key: str | None = None
    primary_key: tuple[str, ...] = ()
    doc: str | None = None
    owner: str | None = None
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
