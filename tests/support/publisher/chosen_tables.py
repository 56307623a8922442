"""Known tables: some are published, some excluded, some the filler's, and the rest ignored."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from cdc_common.messages import tables as table_messages
from publisher.mutations.native_splitter import NativeSplitter
from publisher.tables.as_written import TablesAsWritten
from publisher.tables.cdc_switches import CdcSwitches
from publisher.tables.published_table import PublishedTable
from publisher.tables.roles import Roles
from publisher.tables.row_ends import LogSegments, RowEnds
from publisher.topics.raw_topics import RawTopic
from publisher.topics.waiting import WaitingTables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from cassandra_storage.formats.schema.tables import TableMetadata
    from publisher.tables.node_schema import NodeSchema
    from publisher.topics.raw_topics import RawTopics

HOST = bytes(range(16))
SCHEMA_ID = 7


class ChosenTables:
    """A NodeSchema, as far as splitting asks it, and the raw topics: all are open except those of `closed`.
    `ends`: the segment and position up to which a table is published. Tables are named by their ids.
    """

    def __init__(
        self,
        known: Mapping[bytes, TableMetadata],
        published: AbstractSet[bytes],
        excluded: AbstractSet[bytes] = frozenset(),
        filler: AbstractSet[bytes] = frozenset(),
        closed: AbstractSet[bytes] = frozenset(),
        ends: Mapping[bytes, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        self.tables = known
        self.edition = self.opened = 0
        self.published = {
            table_id: PublishedTable(
                known[table_id], table_id, table_messages.digest(table_messages.canonical(known[table_id]))
            )
            for table_id in published
        }
        self.roles = Roles({}, set(excluded), set(filler), {})
        self.ignored = known.keys() - published - filler
        self.closed = set(closed)
        self.as_written = TablesAsWritten()
        self.as_written.set_tables(known, {})
        self.row_ends = RowEnds(LogSegments())
        self.switches = CdcSwitches(int)
        self.switches.load({table_id.hex(): [*end, end[0], 0] for table_id, end in ends.items()})

    def find_open(self, table: PublishedTable) -> RawTopic | None:
        return None if table.id in self.closed else RawTopic(table, topic_of(table.id), 1, SCHEMA_ID)

    def published_as(self, table: TableMetadata) -> PublishedTable | None:
        return self.published.get(table.id.bytes)

    def schema(self) -> NodeSchema:
        return cast("NodeSchema", self)

    def splitter(self) -> NativeSplitter:
        return NativeSplitter(self.schema(), cast("RawTopics", self), WaitingTables(Path("waiting.json")), HOST)


def topic_of(table_id: bytes) -> str:
    return f"raw.{table_id.hex()}"
