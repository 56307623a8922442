"""The registries of metrics of all programs, filled as if each program were busy with everything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NoReturn, cast

from archive.job.share_report import ShareReport
from archive.job.status import ArchiveStatus
from archive.registrar.registrar import Registrar
from archive.registrar.thread import RegistrarThread
from archive.settings import ArchiveSettings
from archive.writer.report import CutReport
from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.metrics import Collected
from cdc_common.program.operations import Operations
from cdc_common.settings import KafkaSettings
from filler.status import Status as FillerStatus
from filler.status import status_metrics as filler_metrics
from joinery.definition import Join
from joinery.job.join_report import JoinReport
from joinery.job.status import JoineryStatus
from joinery.joining.records import Sizes
from joinery.records import join_share, route_share
from materializer.job.status import JobStatus
from materializer.processing.fold_report import FoldReport
from publisher.monitoring.status import Status, metrics
from publisher.snapshot.state.shown import Shown
from publisher.topics.waiting import ShownTable
from schematizer.catalogue.census import Census, Counted
from schematizer.confluent.store import Counts, Store
from schematizer.metrics import RegistryMetrics
from stream_runtime.driver.lag_watch import Lag, LagWatch
from stream_runtime.driver.stopped import Failure, StoppedShares
from stream_runtime.exactly_once.report import Report, StateReport
from stream_runtime.query.progress import Progress
from stream_runtime.records import Share, SourcePartition
from stream_runtime.state.unused import DiskUse
from stream_runtime.worker.task import TaskResult
from transformer.job.status import TransformStatus
from warehouse.job.status import WarehouseStatus
from warehouse.loading.report import LoadReport

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry


def registries() -> dict[str, CollectorRegistry]:
    """The registries of programs that are busy with everything: each metric has a sample."""
    publisher = Status(
        "host",
        "cluster",
        "5.0.8",
        is_compiled=True,
        lag_seconds=1,
        log_latency_seconds=1,
        seconds_to_full=1,
        full_at=1,
        waiting_tables=(ShownTable("shop.orders", "CDC-021", "shop.orders: CDC-021"),),
        snapshots=(Shown("shop.orders", "id", "sending", 1, 1, 0.5, 1.0),),
    )
    return {
        "cassandra-publisher": _registry(Collected(lambda: metrics(publisher))),
        "cassandra-filler": _registry(
            Collected(lambda: filler_metrics(FillerStatus("host", "cluster", "5.0.8", 600.0, 1 << 25)))
        ),
        "cassandra-materializer": _registry(Collected(_busy_job().metrics)),
        "cassandra-transformer": _registry(Collected(_busy_transformers().metrics)),
        "cassandra-joinery": _registry(Collected(_busy_joins().metrics)),
        "cassandra-archive": _registry(Collected(_busy_archive().metrics)),
        "cassandra-warehouse": _registry(Collected(_busy_warehouse().metrics)),
        "cassandra-schematizer": _busy_schematizer(),
    }


def _no_kafka(_reader: str) -> NoReturn:
    raise AssertionError("asked Kafka")


def _registry(collected: Collected) -> CollectorRegistry:
    registry = Operations("127.0.0.1", 0, dict).registry
    registry.register(collected)
    return registry


def _busy_job() -> JobStatus:
    """One raw partition, which has folded, then stopped, and whose unread messages are lost."""
    share, stopped = Share.of(SourcePartition("cdc.raw.shop.orders", 0)), StoppedShares()
    stopped.stop(share, Failure(CdcError(Code.RAW_SKIPPED, "They are gone.", "None.")))
    lags = LagWatch(_no_kafka, stopped.all)
    lags.latest, lags.measured_at = {share: Lag(1, 9, is_lost=True)}, 0.0
    status = JobStatus("group", stopped, lags)
    state = StateReport(100, disk=DiskUse("here:/states", 30, 10, 900))
    report = Report(
        0, 9, 9, 4, 1, 0.1, state=state, own=FoldReport(ops={"c": 3, "d": 1}, null_values={"unreadable": 1})
    )
    status.count_batch([TaskResult(share, report, None)], Progress("group", 7, 9, 90.0, 0.1, 0.05, 2))
    return status


def _busy_transformers() -> TransformStatus:
    """Return the status of a transformer, as _busy_job does for a job."""
    place = SourcePartition("cdc.shop.orders", 0)
    share, stopped = Share("orders/cdc.shop.orders", (place,), str(place), "orders"), StoppedShares()
    stopped.stop(share, Failure(CdcError(Code.TRANSFORM_FAILED, "It has no name.", "Name it.")))
    lags = LagWatch(_no_kafka, stopped.all)
    lags.latest, lags.measured_at = {share: Lag(1, 9, is_lost=True)}, 0.0
    status = TransformStatus("group", stopped, lags)
    status.count_batch([TaskResult(share, Report(0, 9, 9, 9, 1, 0.1), None)], None)
    return status


def _busy_joins() -> JoineryStatus:
    """Return the status of a join, as _busy_job does for a job."""
    share = join_share("orders", SourcePartition("cassandra-joinery.orders.internal", 0))
    stopped = StoppedShares()
    stopped.stop(share, Failure(CdcError(Code.JOIN_MESSAGE, "It changes too many rows.", "Raise most_rows.")))
    lags = LagWatch(_no_kafka, stopped.all)
    lags.latest, lags.measured_at = {share: Lag(1, 9, is_lost=True)}, 0.0
    on, target = ["o.user_id = u.id"], {"namespace": "shop", "source": "orders_of_users"}
    given = {name: {"namespace": "shop", "source": source} for name, source in (("o", "orders"), ("u", "users"))}
    join = Join.model_validate({"name": "orders", "input": given, "on": on, "target": target})
    status = JoineryStatus("group", [join], stopped, lags)
    own = JoinReport((7, 2), Sizes((7, 2), (3, 1), 3), is_loading=False)
    route = route_share("orders", SourcePartition("cdc.shop.orders", 0))
    joined = TaskResult(share, Report(0, 9, 9, 9, 1, 0.1, own=own), None)
    status.count_batch([joined, TaskResult(route, Report(0, 9, 9, 9, 1, 0.1), None)], None)
    return status


def _busy_archive() -> ArchiveStatus:
    """Return the status of an archive, as _busy_job does for a job."""
    share, stopped = Share.of(SourcePartition("cdc.shop.orders", 0)), StoppedShares()
    stopped.stop(share, Failure(CdcError(Code.ARCHIVE_MESSAGE, "It is no Avro.", "Keep its bytes.")))
    lags = LagWatch(_no_kafka, stopped.all)
    lags.latest, lags.measured_at = {share: Lag(1, 9, is_lost=True)}, 0.0
    status = ArchiveStatus("group", stopped, lags)
    own = ShareReport(CutReport(1, 9, 9), 3, "here:7", 100_000_000)
    status.count_batch([TaskResult(share, Report(0, 9, 9, 9, 1, 0.1, own=own), None)], None)
    status.registrar = RegistrarThread(KafkaSettings(), ArchiveSettings())
    status.registrar.registrar = _Registrar()
    return status


def _busy_warehouse() -> WarehouseStatus:
    """Return the status of a warehouse, as _busy_job does for a job."""
    topic = "cdc.shop.orders"
    share, stopped = Share(topic, (SourcePartition(topic, 0),), topic), StoppedShares()
    stopped.stop(share, Failure(CdcError(Code.WAREHOUSE_VALUE, "It has U+0000.", "Correct the row.")))
    lags = LagWatch(_no_kafka, stopped.all)
    lags.latest, lags.measured_at = {share: Lag(1, 9, is_lost=True)}, 0.0
    status = WarehouseStatus("group", stopped, lags, {})
    load = LoadReport(1, 9, 9, 1, 1, 0.1, {0: 9})
    status.count_batch([TaskResult(share, Report(0, 9, 9, 9, 1, 0.1, own=load), None)], None)
    return status


class _Registrar(Registrar):
    """One that has added a file to a table."""

    def __init__(self) -> None:
        self.counts = Counter({"shop.orders": 1})
        self.errors = {}


class _FilledStore:
    def counts(self) -> Counts:
        return Counts(1, 2, 2)


class _Census:
    def take(self) -> list[Counted]:
        """One number for each metric."""
        states = {"topics": "read-write", "topic_schemas": "read-write", "producers": "late", "consumers": "late"}
        kinds = (*states, "unused_topics", "unused_schemas")
        return [Counted(what, "cdc.shop", states.get(what, ""), 1) for what in kinds]


def _busy_schematizer() -> CollectorRegistry:
    no_status: dict[str, Any] = {}
    registry = Operations("127.0.0.1", 0, lambda: no_status, has_core=False).registry
    own = RegistryMetrics(registry, cast("Store", _FilledStore()), cast("Census", _Census()))
    own.count_request("POST", "/subjects", 200, 0.01)
    own.count_request("POST", "/subjects", 500, 0.01)
    own.count_database_error()
    own.count_refusal("rate")
    return registry
