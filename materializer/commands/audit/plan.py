"""The parameters of the audit's tasks, which run in Spark's executors and get everything they need with their work."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.clients.cassandra import Consistency
from materializer.commands.audit.shown import AuditedTable
from materializer.planning.plan import TableSchema
from materializer.processing.processor import table_catalog
from materializer.records import RawPartition
from materializer.settings import Settings

if TYPE_CHECKING:
    from materializer.rows.catalog import TableCatalog

_SYNC_PERIOD_SECONDS = 10.0  # commitlog_sync_period: Cassandra's default; the publisher warns of a longer one
ANSWER_SECONDS = 30.0  # for a page: longer than the nodes' own timeouts


class AuditOptions(NamedTuple):
    """The options of an audit."""

    # Of SELECT.
    consistency: Consistency = "LOCAL_QUORUM"
    # In how many parts the ring is audited, one after another.
    slices: int = 4
    # How many tasks read at a time; None for as many as Spark runs.
    parallel: int | None = None
    # The limit for all tasks together; 0 for no limit.
    rows_per_second: float = 0.0
    # Rows of one page of SELECT.
    page_rows: int = 500
    # The audit ends early with more candidates.
    most_candidates: int = 10_000
    # How long a second look waits for the watermark that it needs, beyond the log's delay.
    wait_seconds: float = 900.0
    # How long after a write the publisher can read it; None for a bound that suits the release.
    log_delay_seconds: float | None = None
    # Whether Cassandra partitions that differ are repaired.
    repair: bool = False
    # A repair of some Cassandra partitions that takes longer changes nothing.
    repair_seconds: float = 1800.0


class AuditPlan(NamedTuple):
    """The parameters of an audit, which each of its tasks gets."""

    # The materializer's settings.
    settings: Settings
    # The table's raw topic.
    topic: str
    # The number of the raw topic's partitions.
    raw_partitions: int
    # All schemas of the table, from the oldest to the newest, whatever its id was.
    schemas: tuple[TableSchema, ...]
    # The id of the table that is audited.
    table_id: bytes
    # Cassandra's release.
    release: str
    # The options of the command.
    options: AuditOptions

    def all_raw_partitions(self) -> list[RawPartition]:
        return [RawPartition(self.topic, number) for number in range(self.raw_partitions)]

    @property
    def log_delay_seconds(self) -> float:
        """The log's delay: 4.0 and later sync each period, 3.11 hands over whole segments, which the filler fills."""
        if self.options.log_delay_seconds is not None:
            return self.options.log_delay_seconds
        if self.release.startswith("3."):
            return 2 * self.settings.filler.max_segment_age_seconds
        return 3 * _SYNC_PERIOD_SECONDS

    def catalog(self) -> TableCatalog:
        return _catalog(self.schemas)

    def table(self) -> AuditedTable:
        catalog = self.catalog()
        digest, newest = catalog.newest_of(self.table_id)
        return AuditedTable(newest, self.release, catalog.key_encoders(self.table_id, digest).clustering)


class SlicePlan(NamedTuple):
    """The plan of one slice of the ring."""

    # The plan of the whole audit.
    audit: AuditPlan
    # The spans of the slice, each read by one task.
    spans: list[Span]
    # How many tasks read at a time.
    parallel: int


@lru_cache(maxsize=16)
def _catalog(schemas: tuple[TableSchema, ...]) -> TableCatalog:
    return table_catalog(schemas)
