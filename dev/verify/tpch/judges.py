"""The databases that judge: DuckDB and PostgreSQL join the tables' rows by the same SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import duckdb
import psycopg
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

KINDS = {"long": "BIGINT", "string": "VARCHAR", "double": "DOUBLE PRECISION"}


class Judge(Protocol):
    """An empty database."""

    def execute(self, statement: str, /) -> None: ...

    def count(self, statement: str, /) -> int:
        """The number that a SELECT returns."""
        ...

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]], /) -> None: ...

    def close(self) -> None: ...


class DuckDB:
    """In memory."""

    def __init__(self) -> None:
        self._database = duckdb.connect()

    def execute(self, statement: str) -> None:
        self._database.execute(statement)

    def count(self, statement: str) -> int:
        return int(self._database.execute(statement).fetchall()[0][0])

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            columns = list(zip(*rows, strict=True))
            self._database.register("given", pa.table({f"c{at}": list(values) for at, values in enumerate(columns)}))
            self._database.execute(f"INSERT INTO {table} SELECT * FROM given")
            self._database.unregister("given")

    def close(self) -> None:
        self._database.close()


class PostgreSQL:
    """A new database of a server."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)

    def execute(self, statement: str) -> None:
        self._connection.execute(statement.encode())

    def count(self, statement: str) -> int:
        found: Any = self._connection.execute(statement.encode()).fetchone()
        return int(found[0])

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)

    def close(self) -> None:
        self._connection.close()
