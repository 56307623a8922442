"""The example of a job on the stream runtime, on librdkafka's own broker, which keeps no offsets of transactions."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from cdc_common.settings import KafkaSettings
from dev.local_stack.process.paths import project_root
from stream_runtime.kafka import Topics, read_partition
from stream_runtime.records import Share, SourcePartition, TopicShape
from stream_runtime.settings import StatefulSettings
from stream_runtime.worker.loop import loops
from stream_runtime.worker.stateful_loop import StatefulLoopTask, StatefulPlan
from stream_runtime.worker.task import Assignment, TaskResult
from tests.support.mock_brokers import MockBroker, mock_broker

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SHAPE = TopicShape(1, "the-id")
ORDERS = Share.of(SourcePartition("orders", 0))


def example() -> Any:  # noqa: ANN401 - a module that is no part of a package
    spec = importlib.util.spec_from_file_location("count_by_key", project_root() / "docs/examples/count_by_key.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def send(broker: MockBroker, *keys: bytes) -> None:
    producer = Producer({"bootstrap.servers": broker.servers})
    for key in keys:
        producer.produce("orders", b"an order", key, 0)
    assert producer.flush(10) == 0


def run_worker(plan: StatefulPlan) -> TaskResult:
    """Run batches of a worker until one has counted something."""
    task = StatefulLoopTask(plan)
    while not (found := task(Assignment((ORDERS,), 1000, 0.2))):
        pass
    loops.pop(task.loop_key(plan)).close()
    return found[0]


def test_each_message_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with mock_broker() as broker:
        monkeypatch.setattr(Topics, "each_shape", lambda _, topics: dict.fromkeys(topics, SHAPE))
        broker.create_topic("orders")
        broker.create_topic("counts")
        settings = StatefulSettings(
            group_id="count", checkpoint_location=str(tmp_path / "checkpoint"), state_directory=tmp_path / "states"
        )
        kafka = KafkaSettings(bootstrap_servers=broker.servers)
        plan = StatefulPlan(example().CountJob(kafka, settings, "orders", "counts"), {"orders": SHAPE})
        send(broker, b"ann", b"bob", b"ann")
        result = run_worker(plan)
        counts = list(read_partition(kafka, "counts", 0))
    assert result.error is None
    assert counts == [(b"ann", b"1"), (b"bob", b"1"), (b"ann", b"2")]
