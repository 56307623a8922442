"""Reads the node's schema when its version has changed.

A node writes the tables of system_schema one after the other, and its new version last: a half change may be read with
the old version. The tables that it leaves in doubt are read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError, Code
from publisher.tables.half_read import HalfRead
from publisher.tables.system_schema import SystemSchema, read_local

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from cassandra_storage.formats.schema.schema_rows import UnreadableTable
    from cassandra_storage.formats.schema.tables import TableMetadata
    from publisher.tables.system_schema import NodeTables, RunQuery


class SchemaReader:
    """Remembers the version of the last read, and the tables that it left in doubt."""

    def __init__(self, run_query: RunQuery) -> None:
        self._run_query = run_query
        self._system_schema = SystemSchema(run_query)
        self._half_read = HalfRead()
        self._version: UUID | None = None
        # the truncation records by table id, as the last read has found them
        self.truncations: Mapping[UUID, bytes] = {}

    @property
    def has_doubts(self) -> bool:
        """Return whether the last read left tables in doubt: `read_if_changed` reads the schema again then."""
        return self._half_read.is_any

    def forget_version(self) -> None:
        """Make the next call of `read_if_changed` read the schema even if its version is unchanged."""
        self._version = None

    def read_if_changed(
        self, known: Mapping[bytes, TableMetadata], unreadable: Mapping[bytes, UnreadableTable]
    ) -> NodeTables | None:
        """Return the node's tables; None if the version is that of the last read, and no table is in doubt.

        `known` and `unreadable`: the tables of the last read. Those in doubt stay as they are in these.
        """
        version, self.truncations = read_local(self._run_query)
        while version != self._version or self.has_doubts:
            tables = self._read_tables()
            before, (version, _) = version, read_local(self._run_query)
            if version == before:
                self._version = version
                return self._half_read.settle(tables, known, unreadable)
        return None

    def _read_tables(self) -> NodeTables:
        try:
            return self._system_schema.read()
        except FormatError as error:
            raise CdcError(
                Code.CASSANDRA_QUERY,
                f"The node's system_schema cannot be parsed: {error.reason}.",
                "This build supports Cassandra 3.11 to 5.0; report the error with the table's DESCRIBE.",
            ) from error
