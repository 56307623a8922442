"""Avro names for CQL names: Avro allows `[A-Za-z_][A-Za-z0-9_]*`, CQL almost any text between quotes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_]|^[0-9]")


def avro_name(name: str) -> str:
    """The name, with each character that Avro does not allow as `_x<hex>_` (as in SQL/XML, ISO 9075-14)."""
    if not name:
        return "_"
    return _INVALID_CHARACTER.sub(lambda match: f"_x{ord(match[0]):04X}_", name)


def avro_names(names: Iterable[str], taken: frozenset[str] = frozenset()) -> dict[str, str]:
    """CQL name -> Avro name for the fields of one record. All are different, and none is in `taken`.

    Names that Avro allows are assigned first, so that a column added later does not change them. A name that is already
    taken gets underscores appended.
    """
    used = set(taken)
    mapped = {}
    for name in sorted(set(names), key=lambda name: (not _VALID.fullmatch(name), name)):
        candidate = avro_name(name)
        while candidate in used:
            candidate += "_"
        used.add(candidate)
        mapped[name] = candidate
    return mapped


def namespace(*parts: str) -> str:
    """An Avro namespace of dotted parts: a topic prefix, a keyspace, a table, a column, …"""
    return ".".join(avro_name(segment) for part in parts for segment in part.split("."))
