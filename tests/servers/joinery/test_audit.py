"""An audit of a join that runs: it names each planted difference, and nothing else."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import Producer

from cdc_common.errors.codes import Code
from cdc_common.messages import wire
from joinery.planning.joined_schema import key_schema, value_schema
from tests.support.joinery.audits import audited
from tests.support.joinery.local_job import LocalJob
from tests.support.joinery.scene import TARGET_PARTITIONS, Row, Scene, random_rows
from tests.support.joinery.tables import decode, encode
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

FIRST = 100  # of the rows that only this test changes


class Sent(NamedTuple):
    """The last message of a joined row."""

    partition: int
    key: bytes
    value: bytes


def order(number: int, total: float) -> Row:
    return Row("orders", {"id": number, "user_id": number, "total": total, "note": None})


@contextmanager
def load(scene: Scene, job: LocalJob) -> Iterator[None]:
    """Rows change, and the job joins them, while the block runs."""
    done, failures = threading.Event(), []

    def work() -> None:
        random = Random(9)
        try:
            while not done.is_set():
                scene.send(random_rows(random, 40))
                job.run_batch()
        except BaseException as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert not failures


def test_planted_differences_are_named_under_load(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.send(random_rows(Random(1), 150))
    scene.send(order(FIRST + number, 1.0) for number in range(5))
    with LocalJob(scene) as job:
        job.run_until(lambda: scene.joined() == scene.by_sql())
        scene.send([order(FIRST + 3, 2.0)])
        job.run_until(lambda: scene.joined() == scene.by_sql())
        with load(scene, job):
            assert audited(scene, capsys)[:2] == (None, [])
            plant(scene)
            error, differences, others = audited(scene, capsys)
    assert error is not None
    assert error.code is Code.JOIN_AUDIT
    assert error.problem == "5 joined rows are not as the inputs make them."
    assert sorted(line.partition(": ")[2].partition(", at")[0] for line in differences) == [
        'missing: {"user_id": 100, "order_id": 100}',
        'missing: {"user_id": 104, "order_id": 104}',
        'not in the inputs: {"user_id": 102, "order_id": 999}',
        'other values in total, user_name: {"user_id": 101, "order_id": 101}',
        'other values in total: {"user_id": 103, "order_id": 103}',
    ]
    assert len(others) == 1 + TARGET_PARTITIONS
    assert job.errors == {}


def plant(scene: Scene) -> None:
    """A deletion, other values, a row that was never there, an older version, and a tombstone alone."""
    keys, values = key_schema(scene.plan), value_schema(scene.plan)
    sent: dict[int, list[Sent]] = {}
    for message in read_topic(scene.bootstrap, scene.target, TARGET_PARTITIONS):
        key, value, partition = message.key(), message.value(), message.partition()
        assert isinstance(key, bytes)
        assert partition is not None
        if isinstance(value, bytes):
            order_id = decode(keys, key[wire.HEADER_SIZE :])["order_id"]
            sent.setdefault(order_id, []).append(Sent(partition, key, value))
    producer = Producer({"bootstrap.servers": scene.bootstrap})

    def send(like: Sent, value: bytes | None, key: bytes | None = None) -> None:
        producer.produce(scene.target, value, key or like.key, like.partition)

    def changed(like: Sent, **columns: Any) -> bytes:  # noqa: ANN401 - of a row
        change = decode(values, like.value[wire.HEADER_SIZE :])
        after = {**change["after"], **columns} if columns else None
        made = {**change, "before": change["after"], "after": after, "op": "u" if columns else "d"}
        return like.value[: wire.HEADER_SIZE] + encode(values, made)

    first, second, third, fourth, fifth = (sent[FIRST + number] for number in range(5))
    send(first[-1], changed(first[-1]))
    send(first[-1], None)
    send(second[-1], changed(second[-1], total=7.0, user_name="Eve"))
    other_key = third[-1].key[: wire.HEADER_SIZE] + encode(keys, {"user_id": 102, "order_id": 999})
    send(third[-1], changed(third[-1], order_id=999), other_key)
    assert len(fourth) == 2
    send(fourth[-1], fourth[0].value)
    send(fifth[-1], None)
    assert producer.flush(30) == 0
