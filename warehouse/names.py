"""The names of tables and columns in a warehouse.

`cdc.shop.orders` becomes the table `orders` in the schema `shop`: the last part of a topic's name is the table, and the
part before it the schema. A topic of one part is in the schema of the settings. Letters become small, and what is no
letter, digit or `_` becomes `_`. A column has the name of its field, unless it is too long for the warehouse or
differs from another column only in the case of letters: then the first digits of a hash of the field's name follow.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from warehouse.records import TableName

if TYPE_CHECKING:
    from collections.abc import Collection

MOST_BYTES = 63
"""PostgreSQL cuts longer names."""
_TABLE_BYTES = 40
"""Names of tables leave room for three suffixes: `__history`, `__new` and `__deleted`."""
_OTHER = re.compile(r"[^a-z0-9_]")


def table_name(topic: str, default_schema: str, suffix: str = "") -> TableName:
    """The table of a topic. suffix: of the form."""
    before, _, last = topic.rpartition(".")
    schema = before.rpartition(".")[2]
    return TableName(_plain(schema) if schema else default_schema, _plain(last) + suffix)


def column_name(field: str, taken: Collection[str]) -> str:
    """The name of a new column. taken: the names that the table has, in small letters."""
    if len(field.encode()) <= MOST_BYTES and field.lower() not in taken:
        return field
    hashed = sha256(field.encode()).hexdigest()
    for digits in range(8, len(hashed)):
        short = field.encode()[: MOST_BYTES - digits - 1].decode(errors="ignore")
        name = f"{short}_{hashed[:digits]}"
        if name.lower() not in taken:
            return name
    raise AssertionError(f"the column {field} finds no name")


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _plain(text: str) -> str:
    plain = _OTHER.sub("_", text.lower()) or "_"
    if len(plain) <= _TABLE_BYTES:
        return plain
    return f"{plain[: _TABLE_BYTES - 9]}_{sha256(text.encode()).hexdigest()[:8]}"
