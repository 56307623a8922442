"""The columns of a table as Hive writes them. Readers find the columns of Parquet by name, not by number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SCALARS = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "time": "bigint",  # microseconds since midnight: Hive has no times of day
    "timestamp": "timestamp",
    "timestamptz": "timestamp",
}
_DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")


class HiveColumn(NamedTuple):
    """A column."""

    # The name, in small letters, as Hive has it.
    name: str
    # The type, as Hive writes it.
    type: str


def hive_columns(fields: Iterable[Mapping[str, Any]]) -> list[HiveColumn]:
    """The columns of a list of archive.writer.columns. A renamed one is there under each of its names: files keep the
    name that they were written with.
    """
    found: dict[str, HiveColumn] = {}
    for name, kind in _named(fields):
        found.setdefault(name, HiveColumn(name, hive_type(kind)))
    return list(found.values())


def hive_type(kind: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            return f"struct<{','.join(':'.join(column) for column in hive_columns(kind['fields']))}>"
        if kind["type"] == "map":
            return f"map<{hive_type(kind['key'])},{hive_type(kind['value'])}>"
        return f"array<{hive_type(kind['element'])}>"
    if decimal := _DECIMAL.fullmatch(kind):
        return f"decimal({decimal[1]},{decimal[2]})"
    return "binary" if kind.startswith("fixed[") else _SCALARS[kind]


def _named(fields: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    for field in fields:
        for name in (field["name"], *field.get("former", ())):
            yield name.lower(), field["type"]
