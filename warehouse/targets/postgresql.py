"""PostgreSQL: rows are copied into a temporary table, in the binary form of COPY, which the native core writes."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pyarrow as pa

from cdc_native.avro.postgresql import copy_rows
from warehouse.faults import table_refused, warehouse_away
from warehouse.names import quoted
from warehouse.tables.types import POSTGRESQL, Dialect
from warehouse.targets.values import postgresql_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from warehouse.records import TableName
    from warehouse.targets.staging import Staged

_AWAY = (psycopg.OperationalError, psycopg.InterfaceError)
_SAFE_CLASSES = ("42", "3F", "0A", "25", "28", "3D", "53", "54", "55", "57")
"""Classes of errors whose texts have names, and no values of rows."""


_GRANTS = """
SELECT format('GRANT %s ON %I.%I TO %s', privilege_type, nspname, relname,
              CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
       || CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace, aclexplode(relacl)
WHERE nspname = ? AND relname = ? AND grantee <> relowner
"""


class PostgreSqlConnection:
    """warehouse.targets.connection.Connection."""

    dialect: Dialect = POSTGRESQL
    is_indexed = True

    def __init__(self, url: str, password: str, lock_seconds: float) -> None:
        self._url = url
        self._password = password
        self._lock_seconds = lock_seconds
        self._open: psycopg.Connection[tuple[Any, ...]] | None = None

    def run(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        found = self._execute(statement, values)
        return found.fetchall() if found.description else []

    def change(self, statement: str, *values: object) -> int:
        return self._execute(statement, values).rowcount

    def stage(self, table: str, columns: Sequence[Staged]) -> None:
        names = ", ".join(quoted(column.name) for column in columns)
        data = copy_data(columns)
        try:
            with (
                self._connection().cursor() as cursor,
                cursor.copy(f"COPY {table} ({names}) FROM STDIN (FORMAT binary)") as copy,
            ):
                copy.write(data)
        except _AWAY as error:
            self.close()
            raise warehouse_away(self._shown(), _text(error)) from None

    def transaction(self, table: TableName) -> AbstractContextManager[None]:
        return self._transaction(table, "READ COMMITTED")

    def snapshot(self, table: TableName) -> AbstractContextManager[None]:
        return self._transaction(table, "REPEATABLE READ")

    @contextmanager
    def _transaction(self, table: TableName, isolation: str) -> Iterator[None]:
        self.run(f"BEGIN ISOLATION LEVEL {isolation}")
        try:
            self.run(f"SET LOCAL lock_timeout = {int(self._lock_seconds * 1000)}")
            yield
            self.run("COMMIT")
        except BaseException as error:
            self.close()
            if isinstance(error, psycopg.Error):
                raise table_refused(table, _text(error)) from None
            raise

    def grants(self, table: TableName) -> Sequence[str]:
        return [statement for (statement,) in self.run(_GRANTS, *table)]

    def release(self) -> None:
        """Others can use the server all the time."""

    def close(self) -> None:
        """The server aborts an open transaction."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._open is None:
            password = {"password": self._password} if self._password else {}
            self._open = psycopg.connect(self._url, autocommit=True, application_name="cassandra-warehouse", **password)  # type: ignore[arg-type] # psycopg's keywords
            self._open.execute("SET TIME ZONE 'UTC'")
        return self._open

    def _execute(self, statement: str, values: Sequence[object]) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return self._connection().execute(_with_values(statement) if values else statement, values or None)
        except _AWAY as error:
            self.close()
            raise warehouse_away(self._shown(), _text(error)) from None

    def _shown(self) -> str:
        """The URL without a password."""
        parts = urlsplit(self._url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def copy_data(columns: Sequence[Staged]) -> bytes:
    """The columns as COPY reads them."""
    arrays = [postgresql_values(column.values, column.type) for column in columns]
    uuids = {number for number, column in enumerate(columns) if column.type == "UUID"}
    return copy_rows(pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns]), uuids)


def _with_values(statement: str) -> str:
    """psycopg's placeholders."""
    return statement.replace("%", "%%").replace("?", "%s")


def _text(error: psycopg.Error) -> str:
    state = error.sqlstate or ""
    kind = type(error).__name__
    if state[:2] in _SAFE_CLASSES:
        return f"{error.diag.message_primary} ({state})"
    if state:
        return f"{kind} ({state})"
    return f"{kind}: {str(error).splitlines()[0]}" if isinstance(error, _AWAY) and str(error) else kind
