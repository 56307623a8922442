"""Reads conditions and selections, and finds the join key: sets of columns that are equal in rows that meet."""

from __future__ import annotations

import re
from typing import NamedTuple

_COLUMN = r"([A-Za-z_][A-Za-z0-9_]*)\.([A-Za-z_][A-Za-z0-9_]*)"
_CONDITION = re.compile(rf"\s*{_COLUMN}\s*=\s*{_COLUMN}\s*")
_SELECTION = re.compile(rf"\s*{_COLUMN}(?:\s+[Aa][Ss]\s+([A-Za-z_][A-Za-z0-9_]*))?\s*")
_ALL = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\.\*\s*")
ALL = "*"


class Column(NamedTuple):
    """A column of an input."""

    # The input's name in the join.
    input: str
    # The column's name; `*` for all columns.
    name: str

    def __str__(self) -> str:
        return f"{self.input}.{self.name}"


class Selected(NamedTuple):
    """A column that is selected."""

    # The column.
    column: Column
    # Its name in the joined row, if it is another one.
    name: str | None = None


class Condition(NamedTuple):
    """Two columns that are equal in rows that meet."""

    # The column before the equals sign.
    left: Column
    # The column after it.
    right: Column

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


def parse_condition(text: str) -> Condition:
    """Read a condition such as `o.user_id = u.id`. ValueError."""
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise ValueError(f"the condition {text!r} is not of the form `input.column = input.column`")
    condition = Condition(Column(found[1], found[2]), Column(found[3], found[4]))
    if condition.left.input == condition.right.input:
        raise ValueError(f"the condition {condition} compares two columns of one input, so it joins nothing")
    return condition


def parse_selection(text: str) -> Selected:
    """Read a selection such as `o.total`, `u.name as user_name` or `o.*`. ValueError."""
    every = _ALL.fullmatch(text)
    if every is not None:
        return Selected(Column(every[1], ALL))
    found = _SELECTION.fullmatch(text)
    if found is None:
        raise ValueError(
            f"the selection {text!r} is not of the form `input.column`, `input.column as name` or `input.*`"
        )
    return Selected(Column(found[1], found[2]), found[3])


def join_columns(inputs: list[str], conditions: list[Condition]) -> list[dict[str, str]]:
    """The columns of the join key, in the order of the conditions: each has the name of a column of each input.

    ValueError if the conditions do not join all inputs by one key.
    """
    sets: list[set[Column]] = []
    for condition in conditions:
        for column in condition:
            if column.input not in inputs:
                raise ValueError(f"the condition {condition} names {column}, and there is no input {column.input!r}")
        _add(sets, condition)
    joined = {column.input for columns in sets for column in columns}
    for name in inputs:
        if name not in joined:
            raise ValueError(f"no condition joins the input {name!r} with the others")
    return [_by_input(inputs, columns) for columns in sets]


def _add(sets: list[set[Column]], condition: Condition) -> None:
    """Add a condition to the sets of equal columns. ValueError if it says nothing new."""
    touched = [columns for columns in sets if columns & set(condition)]
    if any(columns.issuperset(condition) for columns in touched):
        raise ValueError(f"the condition {condition} follows from those before it: leave it out")
    if not touched:
        sets.append(set(condition))
        return
    first, *others = touched
    first.update(condition, *others)
    for columns in others:
        sets.remove(columns)


def _by_input(inputs: list[str], columns: set[Column]) -> dict[str, str]:
    found: dict[str, str] = {}
    for column in sorted(columns):
        if column.input in found:
            both = f"{column.input}.{found[column.input]} and {column}"
            raise ValueError(f"the conditions compare {both}, which are columns of one input: join by one of them")
        found[column.input] = column.name
    missing = [name for name in inputs if name not in found]
    if missing:
        known = " = ".join(str(column) for column in sorted(columns))
        raise ValueError(
            f"{known} has no column of {missing[0]!r}: all inputs of a join have the same join key. Write two joins: "
            "the second one reads the target of the first"
        )
    return {name: found[name] for name in inputs}
