"""The columns that a table needs for the schemas of a load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from warehouse.faults import schema_refused
from warehouse.records import Column
from warehouse.tables.columns import ColumnError, PersonalData, comments, loaded_fields, merge_columns
from warehouse.tables.forms import Form
from warehouse.tables.types import Dialect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from warehouse.records import State
    from warehouse.tables.schemas import RowSchema


class TableColumns(NamedTuple):
    """The columns of a table with those of the schemas of a load."""

    # The columns.
    columns: tuple[Column, ...]
    # The highest id of a schema.
    schema_id: int
    # The comments that columns get from schemas that are new, by their names.
    comments: Mapping[str, str]


class ColumnRules(NamedTuple):
    """How the columns of a topic's table are made."""

    # The topic.
    topic: str
    # What is done with personal fields.
    personal_data: PersonalData
    # The types of the warehouse.
    dialect: Dialect
    # The form of the table.
    form: Form

    def merge(self, state: State | None, schemas: Iterable[RowSchema]) -> TableColumns:
        """The oldest schema comes first. CdcError for one that the table cannot take."""
        columns = () if state is None else state.columns
        highest = 0 if state is None else state.schema_id
        found: dict[str, str] = {}
        for schema in sorted(schemas, key=lambda schema: schema.schema_id):
            fields = loaded_fields(schema, columns, self.personal_data, self.topic)
            try:
                columns = merge_columns(columns, fields, self.dialect, self.form)
            except ColumnError as error:
                raise schema_refused(self.topic, schema.schema_id, str(error)) from error
            if schema.schema_id > highest:
                highest, found = schema.schema_id, comments(fields, columns)
        return TableColumns(columns, highest, found)
