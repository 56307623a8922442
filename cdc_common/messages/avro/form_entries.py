"""Entries of materializer.type_forms: the forms of one table, or of one column."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, get_args

from cdc_common.messages.avro import type_forms
from cdc_common.messages.avro.type_forms import MOST_DIGITS, FixedDecimal, TypeForms
from cdc_common.messages.errors import MessageError

CHOICES: dict[str, tuple[str, ...]] = {
    "decimals": get_args(type_forms.Decimals),
    "varints": get_args(type_forms.Varints),
    "durations": get_args(type_forms.Durations),
    "user_types": get_args(type_forms.UserTypes),
    "maps": get_args(type_forms.Maps),
    "collections": get_args(type_forms.Collections),
    "out_of_range": get_args(type_forms.OutOfRange),
    "static_rows": get_args(type_forms.StaticRows),
}
"""The settings of a form, and their values."""

_IDENTIFIER = r'[A-Za-z0-9_]+|"(?:[^"]|"")+"'
_NAME = re.compile(rf"({_IDENTIFIER})\.({_IDENTIFIER})(?:\.({_IDENTIFIER}))?\s+(.*)", re.DOTALL)
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")
_COMMA = re.compile(r",(?![^(]*\))")
_EXPECTED = "expected `keyspace.table setting=value …` or `keyspace.table.column decimal(p,s)`"


class FormEntry(NamedTuple):
    """One entry."""

    # The names of the keyspace and the table.
    table: tuple[str, str]
    # The name of the column; "" for an entry of the whole table.
    column: str
    # The forms by the names of their settings, for the whole table.
    values: dict[str, Any]
    # The decimal that the column is; None for an entry of the whole table.
    fixed: FixedDecimal | None


def split_entries(text: str) -> list[str]:
    """The entries of a text, which commas separate."""
    return [entry.strip() for entry in _COMMA.split(text) if entry.strip()]


def parse_entry(entry: str) -> FormEntry:
    """MessageError for one that is not valid."""
    found = _NAME.fullmatch(entry.strip())
    if found is None:
        raise MessageError(f"{entry!r}: {_EXPECTED}")
    keyspace, table, column = (_unquoted(name or "") for name in found.group(1, 2, 3))
    rest = found[4].strip()
    if column:
        return FormEntry((keyspace, table), column, {}, _fixed(entry, rest))
    values = dict(_choice(entry, word) for word in rest.split())
    return FormEntry((keyspace, table), "", values, None)


def with_entries(forms: TypeForms, entries: list[str], keyspace: str, table: str) -> TypeForms:
    """The forms of a table: those of the job, with the table's own entries, in their order."""
    fixed = dict(forms.fixed)
    for entry in map(parse_entry, entries):
        if entry.table != (keyspace, table):
            continue
        forms = forms._replace(**entry.values)
        if entry.fixed is not None:
            fixed[entry.column] = entry.fixed
    return forms._replace(fixed=tuple(sorted(fixed.items())))


def _unquoted(name: str) -> str:
    """As in CQL: a name without quotes is in lower case."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()


def _fixed(entry: str, text: str) -> FixedDecimal:
    found = _DECIMAL.fullmatch(text)
    if found is None:
        raise MessageError(f"{entry!r}: a column may only be decimal(p,s)")
    precision, scale = int(found[1]), int(found[2])
    if not 0 < precision <= MOST_DIGITS or scale > precision:
        raise MessageError(f"{entry!r}: p is 1 to {MOST_DIGITS}, and s at most p")
    return FixedDecimal(precision, scale)


def _choice(entry: str, word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    if name not in CHOICES:
        raise MessageError(f"{entry!r}: {name} is none of {', '.join(CHOICES)}")
    if value not in CHOICES[name]:
        raise MessageError(f"{entry!r}: {name} is one of {', '.join(CHOICES[name])}")
    return name, value
