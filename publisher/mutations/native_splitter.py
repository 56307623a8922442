"""Splits mutations with the native core into complete raw messages, except for mutations that need anything else."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

import cdc_native
from cassandra_storage.formats.rows.header import table_codec
from cassandra_storage.formats.schema.schema_keyspace import SCHEMA_TABLES
from cassandra_storage.formats.schema.tables import TableMetadata
from cdc_common.messages import raw
from publisher.log.batch_reader import SplitEntries
from publisher.topics.raw_topics import RawTopic, RawTopics

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.header import TableCodec
    from cdc_native.formats.mutations import Column, MutationSplitter, Table
    from publisher.log.batch_reader import BatchReader
    from publisher.tables.node_schema import NodeSchema
    from publisher.tables.published_table import PublishedTable
    from publisher.topics.waiting import WaitingTables


def open_splitter(
    schema: NodeSchema, raw_topics: RawTopics, waiting: WaitingTables, host_id: bytes
) -> NativeSplitter | None:
    """None if the core is not in use."""
    return NativeSplitter(schema, raw_topics, waiting, host_id) if cdc_native.is_enabled() else None


def open_catch_up_splitter(schema: NodeSchema, raw_topics: RawTopics, host_id: bytes) -> CatchUpSplitter | None:
    """None if the core is not in use."""
    return CatchUpSplitter(schema, raw_topics, host_id) if cdc_native.is_enabled() else None


class Chosen(NamedTuple):
    """The tables whose mutations the core takes. Python does the rest."""

    # It splits their mutations, for these topics.
    open_topics: list[RawTopic]
    # It may meet these ignored tables beside others in one mutation.
    silent: list[TableMetadata]
    # It steps over their mutations.
    ignored: AbstractSet[bytes]


class _Splitter:
    """Prepares the tables that the core may split or step over, again when something about them has changed."""

    def __init__(self, schema: NodeSchema, raw_topics: RawTopics, host_id: bytes) -> None:
        from cdc_native.formats.batches import Batch  # noqa: PLC0415 - it may not be compiled

        self._schema = schema
        self._raw_topics = raw_topics
        self._host_id = host_id
        self._batch = Batch()
        self._core: MutationSplitter | None = None
        self._prepared_for: object = None
        self._segment = ""
        self._topics: tuple[str, ...] = ()

    def split(self, reader: BatchReader, data: bytes, start: int, position: int, section_end: int) -> SplitEntries:
        """See publisher.log.batch_reader.Splitter."""
        core = self._prepared_core(reader)
        at = core.walk(self._batch, data, position - start, section_end - start, reader.max_mutation, start)
        return SplitEntries(position, start + at, self._batch, self._topics)

    def _prepared_core(self, reader: BatchReader) -> MutationSplitter:
        assert reader.descriptor is not None
        messaging_version = reader.descriptor.messaging_version
        current = (self._schema.edition, self._raw_topics.opened, messaging_version, self._state(reader.segment_id))
        if self._core is None or current != self._prepared_for:
            self._core = self._prepare(messaging_version, reader.segment_id)
            self._prepared_for = current
            self._segment = ""
        if reader.name != self._segment:
            self._core.begin_segment(raw.segment_part(reader.segment_id, reader.name))
            self._segment = reader.name
        return self._core

    def _state(self, segment: int) -> object:
        """Return all that decides about the tables in this segment, besides the schema and the open topics."""
        raise NotImplementedError

    def _choose(self, messaging_version: int, segment: int) -> Chosen:
        raise NotImplementedError

    def _left_out(self, messaging_version: int) -> AbstractSet[bytes]:
        """The schema's tables, those in doubt, and those whose rows end soon are left to the Python code."""
        schema = self._schema
        return SCHEMA_TABLES.keys() | schema.as_written.in_doubt(messaging_version) | schema.row_ends.unannounced

    def _prepare(self, messaging_version: int, segment: int) -> MutationSplitter:
        from cdc_native.formats.mutations import MutationSplitter  # noqa: PLC0415 - it may not be compiled

        chosen = self._choose(messaging_version, segment)
        self._topics = tuple(raw_topic.name for raw_topic in chosen.open_topics)
        return MutationSplitter(
            [
                prepared_table(raw_topic.table, raw_topic.schema_id, self._host_id, messaging_version)
                for raw_topic in chosen.open_topics
            ],
            [silent_table(table) for table in chosen.silent],
            chosen.ignored,
            self._schema.roles.excluded,
        )


class NativeSplitter(_Splitter):
    """Splits for the publisher's loop: tables with an open raw topic whose updates are published wherever they are in
    the segment. It steps over those without anything to publish in it, and over waiting tables once the segment is held
    for them.
    """

    def __init__(self, schema: NodeSchema, raw_topics: RawTopics, waiting: WaitingTables, host_id: bytes) -> None:
        super().__init__(schema, raw_topics, host_id)
        self._waiting = waiting

    def _state(self, segment: int) -> object:
        return self._schema.switches.unpublished_in(segment), self._waiting.skipped, self._waiting.passed_over(segment)

    def _choose(self, messaging_version: int, segment: int) -> Chosen:
        """Mutations of tables with both published and unpublished mutations in the segment are left to the Python code,
        and those of waiting tables until one is held.
        """
        schema, unpublished = self._schema, self._schema.switches.unpublished_in(segment)
        left_out = self._left_out(messaging_version)
        ignored = (schema.ignored | self._waiting.skipped | self._waiting.passed_over(segment)) - left_out
        not_sent = left_out | unpublished.keys() | ignored
        open_topics = [
            raw_topic
            for table_id, table in schema.published.items()
            if table_id not in not_sent and (raw_topic := self._raw_topics.find_open(table)) is not None
        ]
        keyspaces = {raw_topic.table.table.keyspace for raw_topic in open_topics}
        silent = [
            table
            for table_id, table in schema.tables.items()
            if table_id not in left_out
            # All updates of a mutation are of one keyspace.
            and (unpublished.get(table_id) or (table_id in ignored and table.keyspace in keyspaces))
        ]
        return Chosen(open_topics, silent, ignored)


class CatchUpSplitter(_Splitter):
    """Splits for tables that catch up, and steps over all others. tables: their ids."""

    tables: frozenset[bytes] = frozenset()

    def _state(self, segment: int) -> object:
        return self._schema.switches.unpublished_in(segment), self.tables

    def _choose(self, messaging_version: int, segment: int) -> Chosen:
        schema = self._schema
        not_sent = self._left_out(messaging_version) | schema.switches.unpublished_in(segment).keys()
        open_topics = [
            raw_topic
            for table_id in self.tables - not_sent
            if (raw_topic := self._raw_topics.find_last(schema.published[table_id])) is not None
            and raw_topic.table is schema.published[table_id]
        ]
        keyspaces = {raw_topic.table.table.keyspace for raw_topic in open_topics}
        ignored = schema.tables.keys() - self.tables
        silent = [schema.tables[table_id] for table_id in ignored if schema.tables[table_id].keyspace in keyspaces]
        return Chosen(open_topics, silent, ignored | (SCHEMA_TABLES.keys() - self.tables))


def prepared_table(published: PublishedTable, schema_id: int, host_id: bytes, messaging_version: int) -> Table:
    """Return the layout that the core needs to split the table's updates."""
    message = raw.RawMessage(
        kind="row",
        update=b"",
        messaging_version=messaging_version,
        table_id=published.id,
        schema_digest=published.digest,
        truncation_epoch=published.truncated_at,
        host_id=host_id,
        segment=0,
        file="",
        position=0,
        index=0,
    )
    return _prepared(published.table, *raw.table_parts(message, schema_id))


def silent_table(table: TableMetadata) -> Table:
    """Return the layout that the core needs to step over the table's updates."""
    return _prepared(table, b"", b"")


def _prepared(table: TableMetadata, begin: bytes, middle: bytes) -> Table:
    codec = table_codec(table)
    statics, regulars = _columns(codec, is_static=True), _columns(codec, is_static=False)
    return table.id.bytes, codec.clustering_lengths, statics, regulars, begin, middle


def _columns(codec: TableCodec, *, is_static: bool) -> tuple[Column, ...]:
    return tuple(
        (layout.raw, layout.length, layout.is_complex, layout.is_counter)
        for layout in codec.known_layouts(is_static=is_static)
    )
