"""The raw partitions that a worker runs: from settings and plan to PartitionTask, and what is kept open of it."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING

from cassandra_storage.compact_tables import as_selected
from cdc_messages.envelope import ChangeEncoder
from cdc_messages.tables import cluster_name, from_json
from cdc_program.errors import CdcError, Code
from materializer.exactly_once.chunks import ChunkBounds
from materializer.exactly_once.partition_task import Limits, NotOwnerError, PartitionTask, Resources, Work
from materializer.fault_points import FaultPoint, reach
from materializer.fold.chunk import fold_chunk
from materializer.fold.next_timer import next_timer_ms
from materializer.kafka import DEFAULT_LIMITS, GroupPositions, PartitionProducer, ProducerLimits
from materializer.output.change_messages import Emitter, Target
from materializer.output.dead_letters import Burial
from materializer.output.large_messages import LargeMessages
from materializer.rows.catalog import TableCatalog
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS, FoldSettings
from materializer.store.checkpoints import PartitionHistory, Retention
from materializer.store.object_store import FileStore
from materializer.store.rocksdb import open_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from cassandra_storage.schema import TableMetadata
    from cdc_program.settings import KafkaSettings, MaterializerSettings
    from materializer.exactly_once.partition_task import Report
    from materializer.job.plan import BatchPlan, TableSchema, TopicPlan
    from materializer.records import RawPartition, RawRecord


_UPLOAD_SHARE = 0.75  # of the time that a transaction has
_ROWS_TO_MESSAGES = 4  # bytes of rows that a chunk may read for each byte of raw messages that it may have

_open: OrderedDict[RawPartition, PartitionTask] = OrderedDict()


def run_partition(plan: BatchPlan, partition: RawPartition, records: Iterable[RawRecord], work: Work) -> Report:
    """Run the partition's task with what this process keeps of it."""
    traffic = file_store(plan.materializer).traffic
    read, written = traffic.read, traffic.written
    task = _open.pop(partition, None)
    try:
        if task is not None:
            try:
                report = task.run(records, work)
            except NotOwnerError:
                task.close()
                task = None
        if task is None:
            task = _open_task(plan, partition)
            report = task.run(records, work)
    except BaseException:
        if task is not None:
            task.close()
        raise
    _open[partition] = task
    while len(_open) > plan.materializer.open_partitions:
        _open.popitem(last=False)[1].close()
    return report._replace(read=traffic.read - read, written=traffic.written - written)


def close_partition(partition: RawPartition) -> None:
    """Another process has it now, or nobody."""
    task = _open.pop(partition, None)
    if task is not None:
        task.close()


def close_all() -> None:
    while _open:
        _open.popitem()[1].close()


def _open_task(plan: BatchPlan, partition: RawPartition) -> PartitionTask:
    reach(FaultPoint.BEFORE_INIT)
    return PartitionTask(partition, open_resources(plan, partition), limits_of(plan.materializer))


def open_resources(plan: BatchPlan, partition: RawPartition) -> Resources:
    """What works on a raw partition; the one who did before is fenced."""
    settings = plan.materializer
    positions = _positions(plan.kafka, settings.group_id)
    # The producer first: it fences the partition's former task, whose last commit is then seen.
    topic = plan.topics.get(partition.topic)
    limits = ProducerLimits(
        settings.transaction_timeout_seconds,
        DEFAULT_LIMITS.max_message_bytes if topic is None else topic.max_message_bytes,
    )
    producer = PartitionProducer(plan.kafka, settings.group_id, partition, positions.consumer, limits)
    return Resources(
        producer,
        lambda: positions.read([partition])[partition],
        open_state(settings.state_directory / settings.group_id / str(partition)),
        PartitionHistory(file_store(settings), settings.group_id, partition),
    )


def limits_of(settings: MaterializerSettings) -> Limits:
    """The settings as a task goes by them."""
    return Limits(
        ChunkBounds(settings.chunk_max_bytes, settings.chunk_max_messages, settings.chunk_max_seconds),
        settings.max_clock_jump_hours * 3_600_000,
        settings.snapshot_every_versions,
        Retention(settings.changelogs_kept_versions, settings.changelogs_kept_seconds),
        _storage_seconds(settings),
    )


def table_work(plan: BatchPlan, topic: str) -> Work:
    """Folding a raw topic's messages by Cassandra's rules, and publishing envelopes."""
    found = plan.topics.get(topic)
    if found is None:
        raise CdcError(
            Code.SCHEMA_UNKNOWN,
            f"The tables topic holds no schema of the table of {topic}.",
            "Start the publisher that wrote these raw messages again: it sends the schemas it knows.",
        )
    rules = fold_rules(plan.materializer)
    burial = _burial(plan.kafka, topic)
    large = LargeMessages(plan.materializer.on_large_message, found.max_message_bytes, burial.topic)
    return _table_work(found, plan.kafka.topic_prefix, plan.materializer.tombstones, rules, large)._replace(bury=burial)


def fold_rules(settings: MaterializerSettings) -> FoldSettings:
    """The settings as the fold goes by them; the time is stored often enough for all that compares with it."""
    silent_ms = int(settings.stalled_publisher_seconds * 1000)
    longest_ms = min(silent_ms, int(settings.max_clock_jump_hours * 3_600_000)) // 2
    return FoldSettings(
        reorder_ms=int(settings.reorder_seconds * 1000),
        purge_margin_seconds=settings.purge_margin_seconds,
        stalled_publisher_ms=silent_ms,
        forgotten_publishers=frozenset(host.bytes for host in settings.forgotten_publishers),
        max_dead_letters=settings.max_dead_letters,
        max_changes=settings.chunk_max_changes,
        max_bytes=_ROWS_TO_MESSAGES * settings.chunk_max_bytes,
        keep_time_ms=min(DEFAULT_FOLD_SETTINGS.keep_time_ms, longest_ms),
    )


@lru_cache(maxsize=1024)
def _table_work(
    plan: TopicPlan,
    prefix: str,
    tombstones: bool,  # noqa: FBT001 - a cache's key
    rules: FoldSettings,
    large: LargeMessages,
) -> Work:
    targets: dict[bytes, Target] = {}
    for schema, publication in zip(plan.schemas, plan.publications, strict=True):
        if publication is not None:
            shown, cluster = as_selected(_table(schema.json)), cluster_name(schema.json)
            encoder = ChangeEncoder(shown, prefix, publication.key_schema_id, publication.value_schema_id, cluster)
            targets[schema.digest] = Target(publication.topic, publication.partitions, encoder)
    catalog = table_catalog(plan.schemas, {digest: target.topic for digest, target in targets.items()})
    return Work(
        fold=lambda reader, records: fold_chunk(reader, records, catalog, rules),
        emit=Emitter(targets, tombstones=tombstones, large=large),
        partitions=plan.raw_partitions,
        topic_id=plan.topic_id,
        next_timer_ms=lambda state: next_timer_ms(state, rules.reorder_ms),
    )


@lru_cache(maxsize=1024)
def _burial(settings: KafkaSettings, topic: str) -> Burial:
    return Burial(settings, topic)


def table_catalog(schemas: Sequence[TableSchema], topics: Mapping[bytes, str]) -> TableCatalog:
    """Of one table, from its oldest schema to the newest."""
    newest: dict[bytes, bytes] = {}
    for schema in schemas:
        newest.pop(schema.table_id, None)
        newest[schema.table_id] = schema.digest
    tables = {(each.table_id, each.digest): _table(each.json) for each in schemas}
    return TableCatalog(tables, newest, topics)


@lru_cache(maxsize=4096)
def _table(value: bytes) -> TableMetadata:
    return from_json(value)


@lru_cache(maxsize=4)
def _positions(settings: KafkaSettings, group: str) -> GroupPositions:
    """One consumer a process and group."""
    return GroupPositions(settings, group)


def file_store(settings: MaterializerSettings) -> FileStore:
    """The checkpoint location, which this process counts the bytes of."""
    return _file_store(settings.checkpoint_location, _storage_seconds(settings))


@lru_cache(maxsize=4)
def _file_store(location: str, answer_seconds: float) -> FileStore:
    return FileStore(location, answer_seconds)


def _storage_seconds(settings: MaterializerSettings) -> float:
    """How long a worker waits for the checkpoint location."""
    return settings.transaction_timeout_seconds * _UPLOAD_SHARE
