"""Sees that the columns of a table can hold the values of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stream_runtime.records import SourcePartition
from warehouse.faults import value_refused
from warehouse.tables.columns import taken_columns
from warehouse.targets.values import each_refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.records import Column, Rows
    from warehouse.tables.types import Dialect


class Fitting:
    """The rule of a topic's table for values that do not fit."""

    def __init__(self, topic: str, dialect: Dialect, *, nulls_refused: bool) -> None:
        """nulls_refused: whether such a value becomes null. Otherwise it is an error."""
        self._topic = topic
        self._dialect = dialect
        self._nulls_refused = nulls_refused

    def fit(self, found: Sequence[Rows], columns: Sequence[Column]) -> tuple[list[Rows], int]:
        """The rows with values that the columns can hold, and the number of those that became null. CdcError."""
        fitting, nulled = [], 0
        for rows in found:
            made, count = self._fit_rows(rows, columns)
            fitting.append(made)
            nulled += count
        return fitting, nulled

    def _fit_rows(self, rows: Rows, columns: Sequence[Column]) -> tuple[Rows, int]:
        values, nulled = rows.values, 0
        taken = taken_columns(columns, values.schema.names)
        for name, refused, reason in each_refused(values, taken, self._dialect):
            if not self._nulls_refused:
                at = pc.index(refused, pa.scalar(value=True)).as_py()
                where = SourcePartition(self._topic, rows.partition)
                raise value_refused(where, rows.offsets[at], name, reason)
            number = values.schema.get_field_index(name)
            nulled += pc.sum(refused).as_py()
            cleared = pc.if_else(refused, None, values.column(number))
            values = values.set_column(number, values.schema.field(number).with_nullable(True), cleared)
        return replace(rows, values=values), nulled
