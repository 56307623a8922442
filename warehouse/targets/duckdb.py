"""DuckDB: a file that one process has open for writing. It shuts out every other process, so it is opened for loads and
closed after them.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from warehouse.faults import table_refused, warehouse_away
from warehouse.names import quoted
from warehouse.tables.types import DUCKDB, Dialect
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.values import json_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from warehouse.records import TableName
    from warehouse.targets.staging import Staged

_ROWS = "_cdc_rows"
_PAUSE_SECONDS = 0.05
_SAFE = (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException, duckdb.PermissionException)
"""Errors whose texts have names, and no values of rows."""


class DuckDbConnection:
    """warehouse.targets.connection.Connection."""

    dialect: Dialect = DUCKDB
    is_indexed = False  # it keeps no large index in memory, and joins by scanning one column

    def __init__(self, file: Path, lock_seconds: float) -> None:
        self._file = file
        self._lock_seconds = lock_seconds
        self._open: duckdb.DuckDBPyConnection | None = None

    def run(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection().execute(statement, list(values)).fetchall()
        return found

    def change(self, statement: str, *values: object) -> int:
        [(count,)] = self.run(statement, *values)
        return int(count)

    def stage(self, table: str, columns: Sequence[Staged]) -> None:
        names = ", ".join(quoted(column.name) for column in columns)
        arrays = [_values(column) for column in columns]
        rows = pa.Table.from_arrays(arrays, names=[f"c{number}" for number in range(len(arrays))])
        connection = self._connection()
        connection.register(_ROWS, rows)
        try:
            connection.execute(f"INSERT INTO {table} ({names}) SELECT * FROM {_ROWS}")
        finally:
            connection.unregister(_ROWS)

    @contextmanager
    def transaction(self, table: TableName) -> Iterator[None]:
        connection = self._connection()
        connection.begin()
        try:
            yield
            connection.commit()
        except BaseException as error:
            self.close()
            if isinstance(error, duckdb.TransactionException):
                raise LoadTakenError(str(table)) from error  # another connection of this process
            if isinstance(error, duckdb.Error):
                raise table_refused(table, _text(error)) from None
            raise

    def snapshot(self, table: TableName) -> AbstractContextManager[None]:
        return self.transaction(table)

    def grants(self, table: TableName) -> Sequence[str]:  # noqa: ARG002 - DuckDB has no rights
        return []

    def release(self) -> None:
        self.close()

    def close(self) -> None:
        """An open transaction is aborted."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._open is None:
            self._open = self._wait()
        return self._open

    def _wait(self) -> duckdb.DuckDBPyConnection:
        """Open the file once no other process has it."""
        end = time.monotonic() + self._lock_seconds
        while True:
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                return duckdb.connect(str(self._file))
            except (OSError, duckdb.Error) as error:
                if time.monotonic() >= end or not isinstance(error, duckdb.IOException):
                    raise warehouse_away(f"duckdb:///{self._file}", _text(error)) from None
            time.sleep(_PAUSE_SECONDS)


def _values(column: Staged) -> pa.Array:
    values = column.values
    if column.type == "JSON" and pa.types.is_nested(values.type):
        return json_column(values)
    if column.type == "BIGINT" and pa.types.is_timestamp(values.type):
        return values.cast(pa.int64())
    if column.type == "BLOB" and pa.types.is_string(values.type):  # of a message that is older than the column's type
        return values.cast(pa.binary())
    if column.type == "UUID" and pa.types.is_fixed_size_binary(values.type):
        return pa.ExtensionArray.from_storage(pa.uuid(), values)
    return values


def _text(error: Exception) -> str:
    if isinstance(error, (*_SAFE, duckdb.IOException, OSError)):
        return str(error).splitlines()[0].rstrip(".")
    return type(error).__name__
