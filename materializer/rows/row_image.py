"""Images of rows: the columns of a merged row that `SELECT` shows at a given second.

Images that SELECT shows alike are equal (materializer.rows.shown_forms), so a write that changes nothing visible gives
equal images.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.schema.compact_tables import as_selected, hidden_columns
from cassandra_storage.formats.types import counter
from materializer.rows.row_columns import row_columns
from materializer.rows.shown_forms import cells_form, value_form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from cassandra_storage.formats.rows.row import ColumnData, Row
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import ColumnImage, RowImage

    _Form = Callable[[Any], ColumnImage]


class RowImager:
    """Makes the images of one table's rows, with the columns of one schema: `names`, without its key columns."""

    __slots__ = ("_columns", "_dropped", "_forms", "_hidden", "_is_counter", "_is_static_compact", "names")

    def __init__(self, table: TableMetadata, *, is_as_written: bool = False) -> None:
        """is_as_written: the images have the bytes that were written, with all paths."""
        shown = as_selected(table)
        self.names = frozenset(column.name for column in shown.static_columns + shown.regular_columns)
        self._hidden = frozenset(column.name for column in hidden_columns(table))
        self._is_static_compact = table.is_static_compact
        self._dropped: Mapping[str, int] = {
            name: dropped.dropped_time for name, dropped in table.dropped_columns.items() if name in self.names
        }
        self._is_counter = table.is_counter
        self._columns = row_columns(table)
        self._forms: dict[str, _Form] = dict.fromkeys(self.names, _as_written) if is_as_written else {}

    def image(self, row: Row, now: int) -> RowImage | None:
        """The visible columns of a regular row at `now` (s); None if the row is not there.

        As Row.hasLiveData: there if its own liveness is, or any cell. Those that CQL hides of compact tables count too,
        but the rows of static compact tables are their static rows alone.
        """
        if self._is_static_compact:
            return None
        columns = self.columns(row, now)
        return columns if columns or row.liveness.is_live(now) or self._has_hidden(row, now) else None

    def columns(self, row: Row, now: int) -> dict[str, ColumnImage]:
        """The visible columns at `now` (s), of a static row too."""
        visible: dict[str, ColumnImage] = {}
        for name, data in row.columns.items():
            if name in self.names:
                image = self._column(data, now, self._dropped.get(name))
                if image is not None:
                    visible[name] = (self._forms.get(name) or self._form(name))(image)
        return visible

    def _has_hidden(self, row: Row, now: int) -> bool:
        hidden = [data for name, data in row.columns.items() if name in self._hidden] if self._hidden else []
        return any(isinstance(data, Cell) and data.is_live(now) for data in hidden)

    def _column(self, data: ColumnData, now: int, dropped_time: int | None) -> ColumnImage | None:
        if isinstance(data, Cell):
            return self._value(data) if _is_visible(data, now, dropped_time) else None
        # A path is there: the cells of a complex column have one.
        pairs = tuple((cell.path or b"", cell.value) for cell in data.cells if _is_visible(cell, now, dropped_time))
        return pairs or None

    def _form(self, name: str) -> _Form:
        column = self._columns[name]
        if column.is_complex:
            form: _Form = cells_form(column.type)
        else:
            form = value_form(column.type) or _as_written
        self._forms[name] = form
        return form

    def _value(self, cell: Cell) -> bytes:
        if self._is_counter:
            return counter.total(cell.value).to_bytes(8, "big", signed=True)
        return cell.value


def _as_written(image: ColumnImage) -> ColumnImage:
    return image


def _is_visible(cell: Cell, now: int, dropped_time: int | None) -> bool:
    return cell.is_live(now) and (dropped_time is None or cell.timestamp > dropped_time)
