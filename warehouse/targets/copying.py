"""Stages objects: those of one schema are copied together into a table with their own types, and cast from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.names import quoted
from warehouse.tables.forms import KEY, OFFSET, PARTITION, SEQUENCE
from warehouse.tables.types import staged_type
from warehouse.targets.connection import CopiesObjects
from warehouse.targets.objects import OWN, object_type
from warehouse.targets.statements import STAGE, create_stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.records import Column, ObjectGroup
    from warehouse.tables.forms import Form
    from warehouse.tables.types import Dialect
    from warehouse.targets.connection import Connection

OBJECTS = "_cdc_objects"
"""The table that objects are copied into, by the order of their columns."""
_VERSIONS = "_cdc_copied"
"""All versions of rows. The newest are staged."""


def stage_objects(connection: Connection, groups: Sequence[ObjectGroup], columns: Sequence[Column], form: Form) -> None:
    """Stage the rows of objects: of each key the newest, or all of them. CdcError."""
    if not isinstance(connection, CopiesObjects):
        raise TypeError("the target copies no objects")
    dialect = connection.dialect
    into = STAGE if form.keeps_all else _VERSIONS
    connection.run(create_stage(OWN, columns, dialect, into))
    for group in groups:
        connection.run(_create_objects(group, dialect))
        connection.copy_objects(OBJECTS, group.objects)
        connection.run(_insert_objects(group, into, dialect))
        connection.run(f"DROP TABLE {OBJECTS}")
    if into is not STAGE:
        connection.run(create_stage(OWN, columns, dialect))
        connection.run(_keep_newest(columns))
        connection.run(f"DROP TABLE {_VERSIONS}")


def _create_objects(group: ObjectGroup, dialect: Dialect) -> str:
    kinds = [*((name, dialect.own_type(kind)) for name, kind in OWN), *_fields(group)]
    columns = ", ".join(f"{name} {object_type(kind, dialect)}" for name, kind in kinds)
    return f"CREATE TEMPORARY TABLE {OBJECTS} ({columns})"


def _fields(group: ObjectGroup) -> list[tuple[str, str]]:
    """The names and types of the fields, which may have any name in the objects."""
    return [(f"f{number}", field.kind) for number, field in enumerate(group.fields)]


def _insert_objects(group: ObjectGroup, into: str, dialect: Dialect) -> str:
    names = [name for name, _ in OWN]
    values = [_value(name, dialect.own_type(kind), dialect.own_type(kind), dialect) for name, kind in OWN]
    for (name, kind), field in zip(_fields(group), group.fields, strict=True):
        if field.column is not None:
            names.append(quoted(field.column.name))
            values.append(_value(name, kind, staged_type(field.column.type, dialect), dialect))
    return f"INSERT INTO {into} ({', '.join(names)}) SELECT {', '.join(values)} FROM {OBJECTS}"


def _value(name: str, kind: str, wanted: str, dialect: Dialect) -> str:
    """A value of an object, with the type that it has in the staging."""
    value = name
    if object_type(kind, dialect) != kind:
        value = dialect.parsed.get(kind, f"CAST({{}} AS {kind})").format(name)
    if kind == wanted:
        return value
    wider = dialect.widenings.get((kind, wanted))
    return wider.format(value) if wider else f"CAST({value} AS {wanted})"


def _keep_newest(columns: Sequence[Column]) -> str:
    """Stage the newest version of each key. Of two with one sequence it is the later message."""
    names = ", ".join(_names(columns))
    order = f"{SEQUENCE} DESC, {OFFSET} DESC, {PARTITION} DESC"
    place = f"ROW_NUMBER() OVER (PARTITION BY {KEY} ORDER BY {order}) AS _place"
    found = f"SELECT {names}, {place} FROM {_VERSIONS}"
    return f"INSERT INTO {STAGE} ({names}) SELECT {names} FROM ({found}) AS v WHERE _place = 1"


def _names(columns: Sequence[Column]) -> Iterator[str]:
    yield from (name for name, _ in OWN)
    yield from (quoted(column.name) for column in columns)
