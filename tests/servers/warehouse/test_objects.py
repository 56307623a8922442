"""PostgreSQL's COPY reads the CSV of objects exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings

from tests.support.warehouse.object_rows import NAMES, ROWS, exact, from_hex, table_of
from warehouse.targets.objects import write_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.schematizer.postgresql import PostgreSQL
    from tests.support.warehouse.object_rows import Row

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def connection(postgresql: PostgreSQL) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgresql.new_database().replace("+psycopg", ""), autocommit=True) as made:
        kinds = ("TEXT", "BOOLEAN", "BIGINT", "DOUBLE PRECISION", "REAL", "TEXT", "TEXT")
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(NAMES, kinds, strict=True))
        made.execute(f"CREATE TEMPORARY TABLE copied (place SERIAL, {columns})")
        yield made


@given(rows=ROWS.filter(lambda rows: not any("\0" in (text or "") for row in rows for text in (row[0], row[6]))))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_postgresql_reads_the_csv(connection: psycopg.Connection, rows: list[Row]) -> None:
    connection.execute("TRUNCATE copied")
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY copied ({', '.join(NAMES)}) FROM STDIN (FORMAT csv)") as copy,
    ):
        copy.write(write_object(table_of(rows), "csv"))
    found = connection.execute(f"SELECT {', '.join(NAMES)} FROM copied ORDER BY place").fetchall()
    assert [exact((*row[:5], from_hex(row[5]), row[6])) for row in found] == [exact(row) for row in rows]
