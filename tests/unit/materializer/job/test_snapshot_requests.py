"""Which snapshots the driver asks the publishers for; Kafka and the clock are fakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.tables import request_from_json, requested_table
from cdc_common.settings import KafkaSettings
from materializer.job.snapshot_requests import RETRY_SECONDS, WAIT_SECONDS, SnapshotRequests
from materializer.planning.plan import TableSchema, TopicPlan
from materializer.processing.fold_report import FoldReport
from materializer.settings import Settings
from materializer.worker.batch_plan import BatchPlan
from stream_runtime.exactly_once.report import Report
from stream_runtime.worker.task import TaskResult
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stream_runtime.records import Message

TOPIC = "cdc.raw.shop.orders"
FORMER, TABLE = b"f" * 16, b"t" * 16
LOST_MS = 1_800_000_000_000


class Scene:
    """A table with two raw partitions, and what the tables topic has."""

    def __init__(self) -> None:
        self.now = LOST_MS / 1000
        self.known: dict[bytes, int] = {}
        self.sent: list[int] = []
        self.error: CdcError | None = None
        self.requests = SnapshotRequests(KafkaSettings(topic_prefix="cdc"), self.send, lambda: self.now)
        schemas = tuple(TableSchema(table, bytes(16), b"") for table in (FORMER, TABLE))
        settings = Settings()
        topics = {TOPIC: TopicPlan(2, schemas, (None, None), forms=EXACT)}
        self.plan = BatchPlan(topics, settings.kafka, settings.materializer)

    def send(self, _settings: KafkaSettings, messages: Iterable[Message]) -> None:
        if self.error is not None:
            raise self.error
        for message in messages:
            assert (message.topic, message.partition, requested_table(message.key)) == ("cdc.tables", 0, TABLE)
            assert message.value is not None
            self.known[TABLE] = request_from_json(message.value)
            self.sent.append(self.known[TABLE])

    def batch(self, *lost_ms: int | None) -> list[int]:
        """Follows a batch in which raw partitions 0, 1, … lack rows since these times (None: it lacks none)."""
        results = []
        for number, since in enumerate(lost_ms):
            lost = {"host": since} if since else {}
            report = Report(0, 1, 1, 0, int(since is not None), 0.1, own=FoldReport(lost_hosts=lost))
            results.append(TaskResult(share(TOPIC, number), report, None))
        self.sent.clear()
        self.requests.send_new(results, self.plan, self.known)
        return self.sent

    def wait(self, seconds: float = WAIT_SECONDS) -> None:
        self.now += seconds


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_loss_is_requested_once_when_all_raw_partitions_must_know_of_it(scene: Scene) -> None:
    assert not scene.batch(LOST_MS, 0)
    scene.wait(WAIT_SECONDS - 10)
    assert not scene.batch(None, LOST_MS + 60_000)
    scene.wait(60)
    assert not scene.batch(None, None)
    scene.wait(10)
    assert scene.batch(None, None) == [(LOST_MS + 60_000) * 1000]
    scene.wait()
    assert not scene.batch(LOST_MS, LOST_MS + 60_000)


def test_nothing_is_asked_for_if_truncate_is_tried_again(scene: Scene) -> None:
    scene.batch(LOST_MS, LOST_MS)
    scene.batch(0, 0)
    scene.wait()
    assert not scene.batch(0, 0)


def test_a_request_is_withdrawn_when_no_raw_partition_lacks_rows(scene: Scene) -> None:
    scene.known[TABLE] = LOST_MS * 1000  # of a driver that was there before
    assert not scene.batch(0)  # the other raw partition may lack some
    assert scene.batch(None, 0) == [0]
    scene.wait()
    assert not scene.batch(0, 0)
    assert not scene.batch(LOST_MS + 1, 0)
    scene.wait()
    assert scene.batch(None, None) == [(LOST_MS + 1) * 1000]


def test_a_loss_that_one_raw_partition_has_no_more_is_not_another_one(scene: Scene) -> None:
    scene.known[TABLE] = LOST_MS * 1000
    scene.wait()
    assert not scene.batch(LOST_MS - 5, 0)


def test_a_request_that_kafka_refuses_is_tried_again(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.error = CdcError(Code.KAFKA_REFUSED, "Kafka refuses.", "Grant it.")
    scene.wait()
    assert not scene.batch(LOST_MS, LOST_MS)
    assert Code.KAFKA_REFUSED.text in capsys.readouterr().out
    scene.error = None
    assert not scene.batch(None, None)
    scene.wait(RETRY_SECONDS)
    assert scene.batch(None, None) == [LOST_MS * 1000]
