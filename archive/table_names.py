"""The name of a topic's table: `<namespace>.<table>`, by one rule.

The last part of the topic's name is the table, and what is before it, joined by `_`, is the namespace:
`cdc.shop.orders` becomes `cdc_shop.orders`. A topic of one part gets the namespace of the settings. Letters become
small, and what is no letter, digit or `_` becomes `_`. The table of another schema version ends in `__v2`, and the
one of a topic's erasures in `__erasures`.
"""

from __future__ import annotations

import re

_OTHER = re.compile(r"[^a-z0-9_]")
_SUFFIX = re.compile(r"__(v[0-9]+|erasures)$")


def table_name(topic: str, namespace: str) -> str:
    """The name of a topic's table, with its namespace."""
    before, _, last = topic.rpartition(".")
    return f"{_plain(before) if before else namespace}.{_plain(last)}"


def versioned(table: str, version: int) -> str:
    """The name of a table for a schema version."""
    return table if version == 1 else f"{table}__v{version}"


def table_of_form(table: str, form: str) -> str:
    """The name of the table, without the schema version, that a topic's files of a form are in."""
    return f"{table}__erasures" if form == "erasures" else table


def main_table(table: str) -> str:
    """The name of the topic's table, from one of a schema version or of erasures."""
    return _SUFFIX.sub("", table)


def _plain(text: str) -> str:
    return _OTHER.sub("_", text.lower()) or "_"
