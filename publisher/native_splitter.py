"""Splits mutations by the native core: whole raw messages, ready to send, of the mutations that need nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cdc_native
from cassandra_storage.header import table_codec
from cassandra_storage.schema_keyspace import SCHEMA_TABLES
from cdc_messages import raw
from publisher.messages import TRUNCATION_EPOCH

if TYPE_CHECKING:
    from cassandra_storage.header import TableCodec
    from cdc_native.mutations import Column, MutationSplitter, Table
    from publisher.raw_topics import RawTopics
    from publisher.schema import NodeSchema, PublishedTable
    from publisher.tail import SegmentTail


class NativeSplitter:
    """Prepares the tables that the core may split: those with an open raw topic whose updates are published wherever
    they are in the log.

    They are prepared again when the schema, the open topics or the messaging version have changed.
    """

    def __init__(self, schema: NodeSchema, raw_topics: RawTopics, host_id: bytes) -> None:
        self._schema = schema
        self._raw_topics = raw_topics
        self._host_id = host_id
        self._is_enabled = cdc_native.is_enabled()
        self._core: MutationSplitter | None = None
        self._prepared_for = (-1, -1, -1)
        self._tail: SegmentTail | None = None
        self._topics: list[str] = []

    def split(self, mutation: bytes, tail: SegmentTail, position: int) -> list[tuple[str, bytes, bytes]] | None:
        """(raw topic, partition key, raw message) of each part of a mutation of the segment, whose end is `position`.

        None if the Python code is to decode it: it is not of prepared tables only, or not as Cassandra writes them, or
        the core is not in use.
        """
        if not self._is_enabled or self._schema.is_in_doubt(mutation, tail.messaging_version):
            return None
        current = (self._schema.edition, self._raw_topics.opened, tail.messaging_version)
        if self._core is None or current != self._prepared_for:
            self._core = self._prepare(tail.messaging_version)
            self._prepared_for = current
            self._tail = None
        if tail is not self._tail:
            self._core.begin_segment(raw.segment_part(tail.file.id, tail.file.path.name))
            self._tail = tail
        found = self._core.split(mutation, position)
        if found is None:
            return None
        topics = self._topics
        return [(topics[table], key, message) for table, key, message in found]

    def _prepare(self, messaging_version: int) -> MutationSplitter:
        from cdc_native.mutations import MutationSplitter  # noqa: PLC0415 - it may not be compiled

        open_topics = [
            raw_topic
            for table in self._schema.always_published()
            if table.id not in SCHEMA_TABLES and (raw_topic := self._raw_topics.find_open(table)) is not None
        ]
        self._topics = [raw_topic.name for raw_topic in open_topics]
        return MutationSplitter(
            prepared_table(raw_topic.table, raw_topic.schema_id, self._host_id, messaging_version)
            for raw_topic in open_topics
        )


def prepared_table(published: PublishedTable, schema_id: int, host_id: bytes, messaging_version: int) -> Table:
    """What the core needs to split the table's updates."""
    codec = table_codec(published.table)
    message = raw.RawMessage(
        kind="row",
        update=b"",
        messaging_version=messaging_version,
        table_id=published.id,
        schema_digest=published.digest,
        truncation_epoch=TRUNCATION_EPOCH,
        host_id=host_id,
        segment=0,
        file="",
        position=0,
        index=0,
    )
    begin, middle = raw.table_parts(message, schema_id)
    statics, regulars = _columns(codec, is_static=True), _columns(codec, is_static=False)
    return published.id, codec.clustering_lengths, statics, regulars, begin, middle


def _columns(codec: TableCodec, *, is_static: bool) -> tuple[Column, ...]:
    return tuple(
        (layout.raw, layout.length, layout.is_complex, layout.is_counter)
        for layout in codec.known_layouts(is_static=is_static)
    )
