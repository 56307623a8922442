"""The name of a topic's table: `<namespace>.<table>`, by one rule.

The last part of the topic's name is the table, and what is before it, joined by `_`, is the namespace:
`cdc.shop.orders` becomes `cdc_shop.orders`. A topic of one part gets the namespace of the settings. Letters become
small, and what is no letter, digit or `_` becomes `_`. The Iceberg table of another schema version ends in `__v2`.
"""

from __future__ import annotations

import re

_OTHER = re.compile(r"[^a-z0-9_]")
_VERSION = re.compile(r"__v[0-9]+$")


def table_name(topic: str, namespace: str) -> str:
    """The name of a topic's table, with its namespace."""
    before, _, last = topic.rpartition(".")
    return f"{_plain(before) if before else namespace}.{_plain(last)}"


def versioned(table: str, version: int) -> str:
    """The name of an Iceberg table for a schema version."""
    return table if version == 1 else f"{table}__v{version}"


def unversioned(table: str) -> str:
    """The name of a table's first schema version."""
    return _VERSION.sub("", table)


def _plain(text: str) -> str:
    return _OTHER.sub("_", text.lower()) or "_"
