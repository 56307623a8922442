"""Changes that the core's producer sends as a run, beside the messages that Python makes of them."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition, cimpl
from confluent_kafka.admin import AdminClient, NewTopic

pytest.importorskip("cdc_native.kafka.transactions", reason="the native core is not compiled: test_compiled says so")

from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import ChangeEncoder
from cdc_native.fold.changes import EncodedChange, run_of
from cdc_native.kafka.transactions import TransactionalProducer
from dev.bench.raw_load import LOADS, PREFIX
from materializer.fold.chunk import fold_chunk
from materializer.records import RawRecord
from stream_runtime.records import ChangeRun
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import TableWriter, catalog_of, raw_record

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = pytest.mark.servers
SECONDS = 60.0
PARTITIONS = 3
COUNT = 400


@pytest.fixture(scope="module")
def changes() -> list[Any]:
    """Of random inserts, updates and deletions, as the core has folded them."""
    load = LOADS["mixed"]
    catalog = catalog_of(load.table)
    encoders = {
        digest: ChangeEncoder(table, PREFIX, 1, 2, forms=EXACT) for (_, digest), table in catalog.schemas.items()
    }
    now_ms, writer = int(time.time() * 1000), TableWriter(load.table)
    writes = load.writes(random.Random(1), COUNT)
    raw = [raw_record(key, kind, write, offset=at, writer=writer) for at, (key, kind, write) in enumerate(writes)]
    records = [RawRecord(record.key, record.value, at, now_ms) for at, record in enumerate(raw)]
    found = fold_chunk(MemoryState(), records, replace(catalog, encoders=encoders)).changes
    made = [change for change in found if isinstance(change, EncodedChange)]
    assert {change.op for change in made} == {"c", "u", "d"}
    return made


@pytest.mark.parametrize("tombstones", [False, True])
def test_the_producer_sends_what_python_would(
    kafka: KafkaBroker, topic_prefix: str, changes: list[Any], *, tombstones: bool
) -> None:
    topic = f"{topic_prefix}.changes"
    servers: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    run = ChangeRun(topic, PARTITIONS, changes, b"\x02end", tombstones)
    expected: dict[int, list[tuple[bytes, bytes | None]]] = defaultdict(list)
    for message in run.messages():
        expected[message.partition].append((message.key, message.value))
    assert len(expected) == PARTITIONS
    assert tombstones == (None in {value for sent in expected.values() for _, value in sent})

    producer = TransactionalProducer(cimpl.__file__, {**servers, "transactional.id": topic}, lambda *_: None)
    producer.init(SECONDS)
    producer.begin()
    producer.send_changes(*run)
    producer.commit(SECONDS)

    judge = Consumer({**servers, "group.id": topic, "auto.offset.reset": "earliest"})
    for partition, sent in expected.items():
        judge.assign([TopicPartition(topic, partition, 0)])
        read = judge.consume(len(sent), SECONDS)
        assert [(message.key(), message.value()) for message in read] == sent
    judge.close()


def test_a_run_ends_at_another_schema_another_change_or_a_large_one(changes: list[Any]) -> None:
    sizes = [len(change.key) + len(change.value) for change in changes]
    assert run_of(changes, 0, max(sizes)) == (len(changes), 0, 0)
    assert run_of(changes, 7, max(sizes)) == (len(changes), 0, 0)
    assert run_of(changes, len(changes), max(sizes)) == (len(changes), 0, 0)
    assert run_of([*changes[:5], None, *changes[5:]], 2, max(sizes))[0] == 5
    largest = sizes.index(max(sizes))
    assert run_of(changes, 0, max(sizes) - 1)[0] == largest
    assert run_of(changes, largest, max(sizes) - 1)[0] == largest
    with pytest.raises(IndexError):
        run_of(changes, -1, 1)
