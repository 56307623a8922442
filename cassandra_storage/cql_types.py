"""The text of CQL types as system_schema holds it (org.apache.cassandra.cql3.CQL3Type, schema.CQLTypeParser)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cassandra_storage.marshal import CqlType


@dataclass(frozen=True, slots=True)
class UserTypeDefinition:
    """One row of system_schema.types: the fields' types as text, resolved in the keyspace's other types."""

    keyspace: str
    name: str
    field_names: tuple[str, ...]
    field_types: tuple[str, ...]


def parse_type(text: str, keyspace: str, user_types: Mapping[str, UserTypeDefinition]) -> CqlType:
    """The type that the text stands for in the keyspace; FormatError if it is none."""
    raise NotImplementedError


def type_text(type_: CqlType) -> str:
    """The canonical text: parse_type's inverse."""
    raise NotImplementedError
