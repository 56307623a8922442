"""Folding a table's raw messages into changes, and publishing them: what the job does with a raw topic."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from cassandra_storage.formats.schema.compact_tables import as_selected
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.envelope import ChangeEncoder
from cdc_common.messages.tables import cluster_name, from_json
from materializer.fold.chunk import fold_chunk
from materializer.fold.rest import changes_state, find_rest
from materializer.output.change_messages import ChangeWriter, Target
from materializer.output.dead_letters import DeadLetterWriter
from materializer.output.large_messages import LargeMessages
from materializer.processing.raw_processor import RawProcessor
from materializer.rows.catalog import TableCatalog
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS, FoldSettings
from stream_runtime.records import TopicShape
from stream_runtime.worker import collector

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.settings import KafkaSettings
    from materializer.fold.gaps import DeadLetter
    from materializer.fold.result import ChunkResult
    from materializer.planning.plan import TableSchema, TopicPlan
    from materializer.records import RawPartition, RawRecord
    from materializer.settings import MaterializerSettings
    from stream_runtime.records import ChangeRun, Message, Rest
    from stream_runtime.state.reader import StateReader

_ROWS_TO_MESSAGES = 4  # bytes of rows that a chunk may read for each byte of raw messages that it may have


class TableProcessor(RawProcessor):
    """Folds the raw messages of one table by Cassandra's rules, and publishes its changes."""

    def __init__(
        self,
        shape: TopicShape,
        catalog: TableCatalog,
        rules: FoldSettings,
        changes: ChangeWriter,
        dead_letters: DeadLetterWriter,
    ) -> None:
        self.shape = shape
        self.mark = 0  # as rules_mark
        self._catalog = catalog
        self._rules = rules
        self._changes = changes
        self._dead_letters = dead_letters

    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        collector.collect()  # what is left of the chunk before
        return fold_chunk(state, records, self._catalog, self._rules)

    def change_messages(self, result: ChunkResult) -> Iterator[Message | ChangeRun]:
        return self._changes.messages(result.changes, result.published, result.null_values)

    def dead_letter_messages(self, raw_partition: RawPartition, letters: Iterable[DeadLetter]) -> Iterator[Message]:
        return self._dead_letters.messages(raw_partition, letters)

    def is_busy(self, result: ChunkResult) -> bool:
        return changes_state(result.writes)

    def rest(self, state: StateReader) -> Rest | None:
        return find_rest(state, self._catalog, self._rules, self.mark)


def table_processor(
    topic_plan: TopicPlan | None, raw_topic: str, kafka: KafkaSettings, settings: MaterializerSettings
) -> TableProcessor:
    """The processor of a raw topic. CdcError(SCHEMA_UNKNOWN) if it has no plan: its table's schema is not known yet."""
    if topic_plan is None:
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The tables topic holds no schema of the table of {raw_topic}.",
            "Start the publisher that wrote these raw messages: it sends the schemas it knows.",
        )
    dead_letters = _dead_letter_writer(kafka, raw_topic)
    large = LargeMessages(settings.on_large_message, topic_plan.max_message_bytes, dead_letters)
    rules = fold_settings(settings)
    return _table_processor(topic_plan, kafka.topic_prefix, settings.tombstones, rules, large)


@lru_cache(maxsize=4096)
def rules_mark(plan: TopicPlan, rules: FoldSettings) -> int:
    """A hash of what a raw topic's messages are folded with."""
    in_order = rules._replace(forgotten_publishers=frozenset()), sorted(rules.forgotten_publishers)
    return crc32(repr((plan.schemas, plan.change_topics, plan.topic_id, plan.forms, in_order)).encode())


def fold_settings(settings: MaterializerSettings) -> FoldSettings:
    """The fold's settings. It stores the time often enough to tell a stalled publisher from a quiet raw partition."""
    stalled_ms = int(settings.stalled_publisher_seconds * 1000)
    return FoldSettings(
        reorder_ms=int(settings.reorder_seconds * 1000),
        purge_margin_seconds=settings.purge_margin_seconds,
        stalled_publisher_ms=stalled_ms,
        forgotten_publishers=frozenset(host.bytes for host in settings.forgotten_publishers),
        truncate_ms=int(settings.truncate_seconds * 1000),
        ends_dropped=settings.dropped_tables == "delete",
        max_dead_letters=settings.max_dead_letters,
        max_changes=settings.chunk_max_changes,
        max_bytes=_ROWS_TO_MESSAGES * settings.chunk_max_bytes,
        keep_time_ms=min(DEFAULT_FOLD_SETTINGS.keep_time_ms, stalled_ms // 2),
    )


def table_catalog(
    schemas: Sequence[TableSchema],
    targets: Mapping[bytes, Target] | None = None,
    encoders: Mapping[bytes, ChangeEncoder] | None = None,
) -> TableCatalog:
    """The catalog of one table. `schemas`: from the oldest to the newest; `targets`: by schema digest, for a job that
    publishes. encoders: as in TableCatalog.
    """
    newest: dict[bytes, bytes] = {}
    for schema in schemas:
        newest.pop(schema.table_id, None)
        newest[schema.table_id] = schema.digest
    tables = {(schema.table_id, schema.digest): _table(schema.json) for schema in schemas}
    found = targets or {}
    topics = {digest: target.topic for digest, target in found.items()}
    partitions = {target.topic: target.partitions for target in found.values()}
    ids = {target.topic: target.topic_id for target in found.values() if target.topic_id}
    return TableCatalog(tables, newest, topics, encoders or {}, partitions, ids)


@lru_cache(maxsize=1024)
def _table_processor(
    plan: TopicPlan,
    prefix: str,
    tombstones: bool,  # noqa: FBT001 - a cache's key
    rules: FoldSettings,
    large: LargeMessages,
) -> TableProcessor:
    targets: dict[bytes, Target] = {}
    encoders: dict[bytes, ChangeEncoder] = {}
    for schema, change_topic in zip(plan.schemas, plan.change_topics, strict=True):
        if change_topic is not None:
            shown, cluster = as_selected(_table(schema.json)), cluster_name(schema.json)
            ids = change_topic.key_schema_id, change_topic.value_schema_id
            encoder = ChangeEncoder(shown, prefix, *ids, cluster, forms=plan.forms)
            encoders[schema.digest] = encoder
            targets[schema.digest] = Target(
                change_topic.name, change_topic.partitions, encoder, schema.table_id, change_topic.topic_id
            )
    processor = TableProcessor(
        TopicShape(plan.raw_partitions, plan.topic_id),
        table_catalog(plan.schemas, targets, encoders),
        rules,
        ChangeWriter(targets, tombstones=tombstones, large=large),
        large.dead_letters,
    )
    processor.mark = rules_mark(plan, rules)
    return processor


@lru_cache(maxsize=1024)
def _dead_letter_writer(settings: KafkaSettings, raw_topic: str) -> DeadLetterWriter:
    return DeadLetterWriter(settings, raw_topic)


@lru_cache(maxsize=4096)
def _table(value: bytes) -> TableMetadata:
    return from_json(value)
