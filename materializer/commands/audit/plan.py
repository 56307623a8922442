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
    """consistency: of SELECT. slices: in how many parts the ring is audited, one after another.

    parallel: how many tasks read at a time; None for as many as Spark runs. rows_per_second: of all of them; 0 for no
    limit. page_rows: of one SELECT. most_candidates: the audit ends early with more. wait_seconds: for the watermark
    that a second look needs, beyond the log's delay. log_delay_seconds: after so long a write is where the publisher
    reads it; None for a bound that suits the release. repair: whether what differs is repaired. repair_seconds: a
    repair of some Cassandra partitions that takes longer changes nothing.
    """

    consistency: Consistency = "LOCAL_QUORUM"
    slices: int = 4
    parallel: int | None = None
    rows_per_second: float = 0.0
    page_rows: int = 500
    most_candidates: int = 10_000
    wait_seconds: float = 900.0
    log_delay_seconds: float | None = None
    repair: bool = False
    repair_seconds: float = 1800.0


class AuditPlan(NamedTuple):
    """schemas: of the table, from the oldest to the newest, whatever its id was. table_id: of the one that is audited.
    release: Cassandra's.
    """

    settings: Settings
    topic: str
    raw_partitions: int
    schemas: tuple[TableSchema, ...]
    table_id: bytes
    release: str
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
    """spans: of one slice, each read by one task. parallel: how many tasks read at a time."""

    audit: AuditPlan
    spans: list[Span]
    parallel: int


@lru_cache(maxsize=16)
def _catalog(schemas: tuple[TableSchema, ...]) -> TableCatalog:
    return table_catalog(schemas)
