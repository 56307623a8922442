"""The judge Trino: what it reads of the Iceberg tables, from the archive's catalog, as Parquet files of its own."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

from dev.local_stack.servers.trino import TrinoServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

JDBC = {
    "iceberg.catalog.type": "jdbc",
    "iceberg.jdbc-catalog.driver-class": "org.sqlite.JDBC",
    "iceberg.jdbc-catalog.connection-user": "local",
    "iceberg.jdbc-catalog.connection-password": "local",
}
READ = (
    'SELECT _kafka_partition AS "partition", _kafka_offset AS "offset", _op AS op, _row_sequence AS row_sequence, '
    '_ts_us AS ts_us, "before", "after" FROM '
)


class TrinoReader:
    """A Trino that reads into `folder`. It ends with its `with` block. Raises CdcError(SERVER_FAILED)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "trino"
        self._stack = ExitStack()
        self._server: TrinoServer

    def __enter__(self) -> Self:
        self._server = self._stack.enter_context(TrinoServer())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def read(self, database: Path, tables: Mapping[int, str]) -> dict[int, Path]:
        """Read the tables of a catalog. The folders of what was read."""
        own = {
            "iceberg.jdbc-catalog.connection-url": f"jdbc:sqlite:{database}",
            "iceberg.jdbc-catalog.catalog-name": "lake",
            "iceberg.jdbc-catalog.default-warehouse-dir": f"file://{self._folder}",
        }
        self._server.add_catalog("lake", "iceberg", {**JDBC, **own})
        self._server.query(f"CREATE SCHEMA lake.judge WITH (location = 'file://{self._folder}/judge')")
        return {version: self._read(f"version_{version}", f"lake.{name}") for version, name in tables.items()}

    def _read(self, target: str, source: str) -> Path:
        self._server.query(f"CREATE TABLE lake.judge.{target} WITH (format = 'PARQUET') AS {READ}{source}")
        [folder] = (self._folder / "judge").glob(f"{target}-*/data")
        return folder
