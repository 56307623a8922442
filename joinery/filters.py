"""Reads the filters of an input, such as `total >= 10`, `status in ('paid', 'sent')` or `note is not null`.

They are conditions of SQL between one column and literals: a row without a value in that column passes `is null` only.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import Enum
from typing import NamedTuple, TypeAlias

Literal: TypeAlias = Decimal | str | bytes | bool

_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_LITERAL = rf"(?:{_NUMBER}|[xX]'(?:[0-9a-fA-F]{{2}})*'|'(?:[^']|'')*'|(?i:true|false))"
_COLUMN = r"\s*([A-Za-z_][A-Za-z0-9_]*)"
_COMPARISON = re.compile(rf"{_COLUMN}\s*(=|!=|<>|<=|>=|<|>)\s*({_LITERAL})\s*")
_NULL = re.compile(rf"{_COLUMN}\s+is(\s+not)?\s+null\s*", re.IGNORECASE)
_IN = re.compile(rf"{_COLUMN}(\s+not)?\s+in\s*\(\s*({_LITERAL}(?:\s*,\s*{_LITERAL})*)\s*\)\s*", re.IGNORECASE)
_ONE = re.compile(_LITERAL)
FORMS = "`column >= 10`, `column in ('a', 'b')`, `column not in (1, 2)`, `column is null` or `column is not null`"


class Operator(Enum):
    """A question to a column. IN has any number of literals, one for `=`."""

    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    IN = "in"
    NOT_IN = "not in"
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


class Filter(NamedTuple):
    """A condition that the rows of an input meet."""

    # The column.
    column: str
    # What it asks.
    operator: Operator
    # The literals.
    literals: tuple[Literal, ...]
    # The text in the file.
    text: str


def parse_filter(text: str) -> Filter:
    """Read a filter. ValueError."""
    if found := _NULL.fullmatch(text):
        return Filter(found[1], Operator.IS_NOT_NULL if found[2] else Operator.IS_NULL, (), text)
    if found := _IN.fullmatch(text):
        literals = tuple(_literal(part) for part in _ONE.findall(found[3]))
        return Filter(found[1], Operator.NOT_IN if found[2] else Operator.IN, literals, text)
    if found := _COMPARISON.fullmatch(text):
        operators = {"=": Operator.IN, "!=": Operator.NOT_IN, "<>": Operator.NOT_IN}
        operator = operators.get(found[2]) or Operator(found[2])
        return Filter(found[1], operator, (_literal(found[3]),), text)
    raise ValueError(f"the filter {text!r} is not of the form {FORMS}; a text is in single quotes")


def _literal(text: str) -> Literal:
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    if text[0] in "xX":
        return bytes.fromhex(text[2:-1])
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return Decimal(text)
