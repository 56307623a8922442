"""The columns of a table, and what a newer schema makes of them.

Columns are only added and widened, and renamed if the schema says so by an alias. A column whose field is gone stays,
and is null in newer rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from warehouse.faults import personal_loaded, personal_refused
from warehouse.names import column_name
from warehouse.records import Column
from warehouse.tables.forms import CURRENT, Form
from warehouse.tables.types import sql_type, wider_type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from warehouse.tables.schemas import Field, RowSchema
    from warehouse.tables.types import Dialect


PersonalData = Literal["refuse", "leave_out", "load"]
"""What is done with personal fields."""
PERSONAL = "Personal data."
"""What the comments of personal columns begin with."""


class ColumnError(ValueError):
    """A field that the table cannot have."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"the field {field}: {reason}")
        self.field = field


class Migration(NamedTuple):
    """The steps from the columns of a table to later ones."""

    # Columns that get another name: (name before, name after).
    renamed: tuple[tuple[str, str], ...]
    # Columns that are added.
    added: tuple[Column, ...]
    # Columns whose type becomes wider, as they are afterwards, each with the type before.
    widened: tuple[tuple[Column, str], ...]

    @property
    def is_empty(self) -> bool:
        return not (self.renamed or self.added or self.widened)


def merge_columns(
    columns: Sequence[Column], fields: Iterable[Field], dialect: Dialect, form: Form = CURRENT
) -> tuple[Column, ...]:
    """The columns with the fields of a schema. ColumnError for a field that they cannot take."""
    found = list(columns)
    fields = tuple(fields)
    present = {field.name for field in fields}
    for field in fields:
        try:
            wanted = sql_type(field.form, dialect, is_json=field.is_json)
        except ValueError as error:
            raise ColumnError(field.name, str(error)) from error
        at = _place(found, field, present)
        taken = {column.name.lower() for column in found} | set(form.own_names)
        if at is None:
            found.append(Column((field.name,), column_name(field.name, taken), wanted))
            at = len(found) - 1
        column = found[at]
        wider = wider_type(column.type, wanted, dialect)
        if wider is None:
            raise ColumnError(field.name, f"its type is {wanted} and was {column.type}")
        if field.name not in column.fields:
            name = column_name(field.name, taken - {column.name.lower()})
            column = column._replace(fields=(field.name, *column.fields), name=name)
        found[at] = column._replace(type=wider, fields=(*column.fields, *_new_aliases(found, field, present)))
    return tuple(found)


def loaded_fields(
    schema: RowSchema, columns: Sequence[Column], personal_data: PersonalData, topic: str
) -> tuple[Field, ...]:
    """The fields of a schema that the table may have. CdcError if it may not have all of them."""
    personal = [field for field in schema.fields if field.is_personal]
    if personal_data == "load" or not personal:
        return schema.fields
    if personal_data == "refuse":
        raise personal_refused(topic, schema.schema_id, [field.name for field in personal])
    names = {name for field in personal for name in (field.name, *field.aliases)}
    loaded = [column for column in columns if names.intersection(column.fields)]
    if loaded:
        raise personal_loaded(topic, [column.name for column in loaded])
    return tuple(field for field in schema.fields if not field.is_personal)


def comments(fields: Iterable[Field], columns: Sequence[Column]) -> dict[str, str]:
    """The comments of the columns that fields have, by the columns' names."""
    by_name = {field.name: _comment(field) for field in fields}
    return {column.name: by_name[name] for column, name in taken_columns(columns, by_name.keys()) if by_name[name]}


def _comment(field: Field) -> str:
    return " ".join(filter(None, (PERSONAL if field.is_personal else "", field.doc)))


def taken_columns(columns: Sequence[Column], present: Collection[str]) -> list[tuple[Column, str]]:
    """The columns that rows with these fields have, each with its field."""
    places = {name: _known_place(columns, name, present) for name in present}
    found = {at: name for name, at in places.items() if at is not None}
    return [(columns[at], found[at]) for at in sorted(found)]


def _place(columns: Sequence[Column], field: Field, present: Collection[str]) -> int | None:
    """The place of a field's column: by the field's name, or by an alias that no field has as its name."""
    at = _known_place(columns, field.name, present)
    if at is not None:
        return at
    aliases = [alias for alias in field.aliases if alias not in present]
    return next((at for at, column in enumerate(columns) if column.fields[0] in aliases), None)


def _new_aliases(columns: Sequence[Column], field: Field, present: Collection[str]) -> list[str]:
    """Earlier names of a field that no column has yet: a message of an older schema may come later."""
    known = {name for column in columns for name in column.fields}
    return [alias for alias in dict.fromkeys(field.aliases) if alias not in known and alias not in present]


def _known_place(columns: Sequence[Column], name: str, present: Collection[str]) -> int | None:
    """The place of the column that has a field: by its newest name, or by an earlier one if the newest is not there."""
    earlier = None
    for at, column in enumerate(columns):
        if column.fields[0] == name:
            return at
        if name in column.fields and column.fields[0] not in present:
            earlier = at
    return earlier


def migration(before: Sequence[Column], after: Sequence[Column]) -> Migration:
    """The steps from the columns of a table to what merge_columns has made of them."""
    pairs = list(zip(before, after, strict=False))
    return Migration(
        tuple((old.name, new.name) for old, new in pairs if old.name != new.name),
        tuple(after[len(before) :]),
        tuple((new, old.type) for old, new in pairs if old.type != new.type),
    )
