"""A mutation split by the native core and by the Python code, into messages as they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from cassandra_storage.formats.errors import FormatError
from cdc_common.messages import raw, tables
from publisher.mutations.messages import Origin, split_into_messages
from publisher.mutations.native_splitter import prepared_table
from publisher.tables.published_table import PublishedTable
from tests.support.cassandra_storage.segment_builder import entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_native.formats.mutations import Table
    from publisher.tables.node_schema import NodeSchema

HOST = bytes(range(16))
SEGMENT, FILE = 1_795_262_705_372, "CommitLog-7-1795262705372.log"
SCHEMA_ID = 7

Sent: TypeAlias = list[tuple[int, bytes, bytes]]
"""(the table's place, the partition key, the message)."""


class AllPublished:
    """A NodeSchema, as split_into_messages uses it, that publishes each table everywhere. It is its own parts."""

    ignored: frozenset[bytes] = frozenset()
    excluded: frozenset[bytes] = frozenset()
    filler_ids: frozenset[bytes] = frozenset()

    def __init__(self, known: Mapping[bytes, TableMetadata]) -> None:
        self.as_written = self.roles = self.switches = self
        self.tables = known
        self.published = {
            table_id: PublishedTable(table, table_id, tables.digest(tables.canonical(table)))
            for table_id, table in known.items()
        }

    def tables_for(self, _mutation: bytes, _messaging_version: int) -> Mapping[bytes, TableMetadata]:
        return self.tables

    def published_as(self, table: TableMetadata) -> PublishedTable:
        return self.published[table.id.bytes]

    def is_published_at(self, _table_id: bytes, _segment: int, _position: int) -> bool:
        return True


class Core:
    """The native core with single mutations."""

    def __init__(self, prepared: Iterable[Table]) -> None:
        from cdc_native.formats.batches import Batch  # noqa: PLC0415 - it may not be compiled
        from cdc_native.formats.mutations import MutationSplitter  # noqa: PLC0415

        self._splitter = MutationSplitter(prepared)
        self._splitter.begin_segment(raw.segment_part(SEGMENT, FILE))
        self._batch = Batch()

    def split(self, mutation: bytes, position: int) -> Sent | None:
        """The messages of a mutation that ends at `position`; None if it is not taken."""
        data = entry(mutation)
        at = self._splitter.walk(self._batch, data, 0, len(data), len(data), position - len(data))
        assert at == (len(data) if self._batch.mutations else 0)
        return [self._batch.message(index) for index in range(len(self._batch))] if at else None


class SplitTwice:
    """Both ways for mutations of these tables, all in one segment."""

    def __init__(self, known: Mapping[bytes, TableMetadata], messaging_version: int) -> None:
        self._schema = AllPublished(known)
        self._version = messaging_version
        self._places = {table_id: place for place, table_id in enumerate(known)}
        self.prepared = [
            prepared_table(published, SCHEMA_ID, HOST, messaging_version)
            for published in self._schema.published.values()
        ]
        self.core = Core(self.prepared)

    def by_python(self, mutation: bytes, position: int) -> Sent | None:
        """None if it is refused."""
        origin = Origin(HOST, SEGMENT, FILE, self._version, position)
        try:
            decoded = split_into_messages(mutation, origin, cast("NodeSchema", self._schema))
        except FormatError:
            return None
        return [
            (self._places[message.table.id], message.partition_key, raw.encode(message.message, SCHEMA_ID))
            for message in decoded.messages
        ]

    def check_taken(self, mutation: bytes, position: int = 1000) -> Sent:
        """The messages; the core takes the mutation, and makes what the Python code makes."""
        expected = self.by_python(mutation, position)
        assert expected is not None
        assert self.core.split(mutation, position) == expected
        return expected

    def check_any(self, mutation: bytes, position: int = 1000) -> bool:
        """Return whether the core takes the mutation: then it makes what the Python code makes."""
        taken = self.core.split(mutation, position)
        if taken is None:
            return False
        assert taken == self.by_python(mutation, position)
        return True
