"""The status of the archive: counts by topic, tables that fail, and the text of `cassandra-archive status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from archive.faults import table_refused
from archive.files import open_store
from archive.job.share_report import ShareReport
from archive.job.status import ArchiveStatus, text
from archive.registrar.registrar import Registrar
from archive.registrar.thread import RegistrarThread
from archive.settings import ArchiveSettings
from archive.writer.report import CutReport
from cdc_common.settings import KafkaSettings
from stream_runtime.driver.lag_watch import LagWatch
from stream_runtime.driver.stopped import StoppedShares
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.records import Share, SourcePartition
from stream_runtime.worker.task import TaskResult

if TYPE_CHECKING:
    from pathlib import Path
    from typing import NoReturn

TOPIC = "cdc.shop.orders"
CUT = CutReport(cuts=1, messages=12, rows=9, refused=2, lost=1, new_versions=1, files=3, bytes=300)


def _no_kafka(_reader: str) -> NoReturn:
    raise AssertionError("asked Kafka")


@pytest.fixture
def status(tmp_path: Path) -> ArchiveStatus:
    stopped = StoppedShares()
    made = ArchiveStatus("group", stopped, LagWatch(_no_kafka, stopped.all))
    made.registrar = RegistrarThread(KafkaSettings(), ArchiveSettings())
    made.registrar.registrar = Registrar("lake", {}, open_store(str(tmp_path)), "events")
    share = Share.of(SourcePartition(TOPIC, 0))
    for _ in range(2):
        made.count_batch(
            [TaskResult(share, NOTHING_DONE._replace(seconds=1.5, own=ShareReport(CUT, 3, "host:7", 2_000)), None)]
        )
    return made


def samples(status: ArchiveStatus) -> dict[str, float]:
    return {sample.name: sample.value for family in status.metrics() for sample in family.samples}


def test_each_topic_has_its_counts(status: ArchiveStatus) -> None:
    found = samples(status)
    assert {name: found[f"cdc_archive_{name}_total"] for name in ("cuts", "rows", "files", "file_bytes")} == {
        "cuts": 2,
        "rows": 18,
        "files": 6,
        "file_bytes": 600,
    }
    assert found["cdc_archive_refused_messages_total"] == 4
    assert found["cdc_archive_lost_messages_total"] == 2
    assert found["cdc_archive_new_schema_versions_total"] == 2


def test_workers_and_open_buckets(status: ArchiveStatus) -> None:
    other = Share.of(SourcePartition(TOPIC, 8))
    status.count_batch([TaskResult(other, NOTHING_DONE._replace(own=ShareReport(open_files=4)), None)])
    found = samples(status)
    assert found["cdc_archive_open_buckets"] == 3 + 4
    assert found["cdc_archive_worker_memory_bytes"] == 2_000
    assert found["cdc_archive_worker_work_seconds_total"] == 3.0
    status.set_shares([other])
    assert samples(status)["cdc_archive_open_buckets"] == 4


def test_a_table_that_fails_is_named(status: ArchiveStatus) -> None:
    assert status.registrar is not None
    assert status.registrar.registrar is not None
    status.registrar.registrar.counts["shop.users"] = 4
    status.registrar.registrar.errors["shop.orders"] = table_refused("shop.orders", "its column x is foreign")
    found = {sample.labels["table"]: sample.value for family in status.metrics() for sample in family.samples
             if sample.name == "cdc_archive_table_stopped"}  # fmt: skip
    assert found == {"shop.orders": 1, "shop.users": 0}
    shown = text(status.as_json())
    assert f"{TOPIC}: 18 rows in 6 files since the start" in shown
    assert "table shop.orders: CDC-114 The table shop.orders of the catalog" in shown
    assert "shop.users:" not in shown
