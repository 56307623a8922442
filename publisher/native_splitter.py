"""Splits mutations with the native core into complete raw messages, except for mutations that need anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cdc_native
from cassandra_storage.header import table_codec
from cassandra_storage.schema_keyspace import SCHEMA_TABLES
from cdc_messages import raw
from publisher.batch_reader import SplitEntries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.commitlog import SegmentReader
    from cassandra_storage.header import TableCodec
    from cassandra_storage.schema import TableMetadata
    from cdc_native.mutations import Column, MutationSplitter, Table
    from publisher.raw_topics import RawTopics
    from publisher.schema import NodeSchema, PublishedTable


def open_splitter(schema: NodeSchema, raw_topics: RawTopics, host_id: bytes) -> NativeSplitter | None:
    """None if the core is not in use."""
    return NativeSplitter(schema, raw_topics, host_id) if cdc_native.is_enabled() else None


class NativeSplitter:
    """Prepares the tables that the core may split: those with an open raw topic whose updates are published wherever
    they are in the segment, and those without anything to publish in it.

    They are prepared again when the schema, the open topics, the messaging version or those tables have changed.
    """

    def __init__(self, schema: NodeSchema, raw_topics: RawTopics, host_id: bytes) -> None:
        from cdc_native.batches import Batch  # noqa: PLC0415 - it may not be compiled

        self._schema = schema
        self._raw_topics = raw_topics
        self._host_id = host_id
        self._batch = Batch()
        self._core: MutationSplitter | None = None
        self._prepared_for: object = None
        self._segment = ""
        self._topics: tuple[str, ...] = ()

    def split(self, reader: SegmentReader, data: bytes, start: int, position: int, section_end: int) -> SplitEntries:
        """See publisher.batch_reader.Splitter."""
        core = self._prepared_core(reader)
        at = core.walk(self._batch, data, position - start, section_end - start, reader.max_mutation, start)
        return SplitEntries(position, start + at, self._batch, self._topics)

    def _prepared_core(self, reader: SegmentReader) -> MutationSplitter:
        assert reader.descriptor is not None
        messaging_version = reader.descriptor.messaging_version
        unpublished = self._schema.unpublished_in(reader.segment_id)
        current = (self._schema.edition, self._raw_topics.opened, messaging_version, unpublished)
        if self._core is None or current != self._prepared_for:
            self._core = self._prepare(messaging_version, unpublished)
            self._prepared_for = current
            self._segment = ""
        if reader.name != self._segment:
            self._core.begin_segment(raw.segment_part(reader.segment_id, reader.name))
            self._segment = reader.name
        return self._core

    def _prepare(self, messaging_version: int, unpublished: Mapping[bytes, bool]) -> MutationSplitter:
        """Mutations of tables in doubt and of the schema's tables are left to the Python code, and so are those of
        tables with both published and unpublished mutations in the segment, and of those whose rows end soon.
        """
        from cdc_native.mutations import MutationSplitter  # noqa: PLC0415 - it may not be compiled

        schema = self._schema
        left_out = SCHEMA_TABLES.keys() | schema.in_doubt(messaging_version) | schema.row_ends.unannounced
        not_sent = left_out | unpublished.keys()
        open_topics = [
            raw_topic
            for table_id, table in schema.published.items()
            if table_id not in not_sent and (raw_topic := self._raw_topics.find_open(table)) is not None
        ]
        ignored = schema.ignored - left_out
        keyspaces = {raw_topic.table.table.keyspace for raw_topic in open_topics}
        silent = [
            table
            for table_id, table in schema.tables.items()
            if table_id not in left_out
            # All updates of a mutation are of one keyspace.
            and (unpublished.get(table_id) or (table_id in ignored and table.keyspace in keyspaces))
        ]
        self._topics = tuple(raw_topic.name for raw_topic in open_topics)
        return MutationSplitter(
            [
                prepared_table(raw_topic.table, raw_topic.schema_id, self._host_id, messaging_version)
                for raw_topic in open_topics
            ],
            [silent_table(table) for table in silent],
            ignored,
            schema.excluded,
        )


def prepared_table(published: PublishedTable, schema_id: int, host_id: bytes, messaging_version: int) -> Table:
    """What the core needs to split the table's updates."""
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
    """What the core needs to step over the table's updates."""
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
