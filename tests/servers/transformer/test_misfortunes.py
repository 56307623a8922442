"""Running transformers and topics that vanish, a registry that is away, messages that should not be there."""

from __future__ import annotations

import random
import time
from string import ascii_letters
from typing import TYPE_CHECKING

import pytest
import structlog
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from cdc_common.errors.codes import Code
from cdc_common.messages import wire
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.transformer.local_job import LocalJob
from tests.support.transformer.orders import ENVELOPE, KEY, ORDER, encode, envelope, with_column
from tests.support.transformer.scene import PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.schematizer.registry_process import Registry
    from tests.support.transformer.scene import Scene

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

MIB = 1 << 20
LETTERS = "".join(random.Random(1).choices(ascii_letters, k=100_000))  # longer than LZ4 looks back, so incompressible
SECONDS = 30.0


@pytest.fixture
def admin(scene: Scene) -> AdminClient:
    return AdminClient({"bootstrap.servers": scene.bootstrap})


def count(scene: Scene, admin: AdminClient) -> int:
    """The messages that have come out."""
    target = scene.targets[0]
    if target not in admin.list_topics(timeout=SECONDS).topics:
        return 0
    return sum(map(len, scene.received(target).values()))


def delete(admin: AdminClient, topic: str) -> None:
    admin.delete_topics([topic])[topic].result(SECONDS)


def set_topic(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def produce(scene: Scene, key: bytes, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": scene.bootstrap, "message.max.bytes": 64 * MIB})
    producer.produce(scene.topic, value, key, 0)
    assert producer.flush(SECONDS) == 0


def test_messages_are_as_large_as_the_source_allows(scene: Scene, admin: AdminClient) -> None:
    set_topic(admin, scene.topic, "max.message.bytes", str(8 * MIB))
    key_id, value_id = scene.register()
    row = {**ORDER, "id": 0, "bits": 1, "home": {"city": LETTERS * 30}}
    value = wire.header(value_id) + encode(ENVELOPE, envelope(None, row, "c"))
    assert len(value) > 2 * MIB
    produce(scene, wire.header(key_id) + encode(KEY, {"id": 0}), value)
    with LocalJob(scene) as job:
        job.run_until(lambda: bool(job.errors) or count(scene, admin) == 1)
        assert not job.errors


def test_a_target_that_is_deleted_is_made_again(scene: Scene, admin: AdminClient) -> None:
    """A group that is lost stops, since the target has messages. Its fix says to delete the target."""
    scene.send(range(20))
    with LocalJob(scene) as job:
        job.run_until(lambda: count(scene, admin) == 20)
    with LocalJob(scene, group_id=f"{scene.prefix}-other") as job:
        job.run_until(lambda: len(job.errors) == PARTITIONS)
        assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_REPEATED}
        delete(admin, scene.targets[0])
        job.run_until(lambda: count(scene, admin) == 20)
    assert scene.received(scene.targets[0]) == scene.expected(range(20))


def test_a_lost_group_stops_also_if_the_targets_messages_have_expired(scene: Scene, admin: AdminClient) -> None:
    scene.send(range(20))
    target = scene.targets[0]
    with LocalJob(scene) as job:
        job.run_until(lambda: count(scene, admin) == 20)
    set_topic(admin, target, "cleanup.policy", "compact,delete")
    for future in admin.delete_records([TopicPartition(target, number, -1) for number in range(PARTITIONS)]).values():
        future.result(SECONDS)
    assert count(scene, admin) == 0
    with LocalJob(scene, group_id=f"{scene.prefix}-other") as job:
        job.run_until(lambda: len(job.errors) == PARTITIONS)
    assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_REPEATED}
    assert count(scene, admin) == 0


class TestBrokerThatMakesTopics:
    """The broker has Kafka's defaults: it creates what a client asks for, with its own settings."""

    @pytest.fixture
    def kafka(self, tmp_path: Path) -> Iterator[KafkaBroker]:
        own = {"auto.create.topics.enable": "true", "num.partitions": str(PARTITIONS)}
        broker = KafkaBroker(settings=own, folder=tmp_path / "kafka")
        try:
            yield broker.start()
        finally:
            broker.close()

    def test_a_target_that_is_deleted_under_a_running_job_is_made_again_as_it_must_be(
        self, scene: Scene, admin: AdminClient
    ) -> None:
        scene.send(range(20))
        with LocalJob(scene) as job:
            job.run_until(lambda: count(scene, admin) == 20)
            delete(admin, scene.targets[0])
            scene.send(range(20, 60))
            job.run_until(lambda: count(scene, admin) == 40, seconds=6 * SECONDS)  # a commit gives up after 30 s
        assert scene.received(scene.targets[0]) == scene.expected(range(20, 60))
        resource = ConfigResource(ResourceType.TOPIC, scene.targets[0])
        settings = admin.describe_configs([resource])[resource].result(SECONDS)
        assert settings["cleanup.policy"].value == "compact"


class TestBrokerThatForgetsProducers:
    """The broker forgets an idle producer after 4 seconds instead of 7 days."""

    @pytest.fixture
    def kafka(self, tmp_path: Path) -> Iterator[KafkaBroker]:
        cleanup = "transaction.remove.expired.transaction.cleanup.interval.ms"
        own = {"transactional.id.expiration.ms": "4000", cleanup: "500"}
        with KafkaBroker(settings=own, folder=tmp_path / "kafka") as broker:
            yield broker

    def test_an_idle_week_stops_nothing(self, scene: Scene, admin: AdminClient) -> None:
        scene.send(range(20))
        with LocalJob(scene) as job, structlog.testing.capture_logs() as logged:
            job.run_until(lambda: count(scene, admin) == 20)
            time.sleep(10.0)
            scene.send(range(20, 60))
            job.run_until(lambda: count(scene, admin) == 60)
            assert job.errors == {}
        assert [entry["log_level"] for entry in logged if entry["event"] == "producer renewed"] == [
            "warning"
        ] * PARTITIONS
        assert scene.received(scene.targets[0]) == scene.expected(range(60))


def test_a_source_that_is_deleted_and_comes_back_stops(scene: Scene, admin: AdminClient) -> None:
    """It is another topic, whose messages may be the same again. Nothing of it is sent."""
    scene.send(range(20))
    with LocalJob(scene) as job:
        job.run_until(lambda: count(scene, admin) == 20)
        delete(admin, scene.topic)
        for _ in range(3):
            job.planner._next_look = -1.0
            job.run_batch()
        assert count(scene, admin) == 20
        admin.create_topics([NewTopic(scene.topic, PARTITIONS, 1)])[scene.topic].result(SECONDS)
        scene.send(range(20, 60))
        job.errors.clear()
        job.run_until(lambda: Code.TRANSFORM_SOURCE in {error.code for error in job.errors.values()})
        for _ in range(3):
            job.planner._next_look = -1.0
            job.run_batch()
    assert scene.received(scene.targets[0]) == scene.expected(range(20))


def test_messages_that_are_deleted_before_they_are_read_stop(scene: Scene, admin: AdminClient) -> None:
    scene.send(range(20))
    with LocalJob(scene) as job:
        job.run_until(lambda: count(scene, admin) == 20)
    scene.send(range(20, 60))
    places = [TopicPartition(scene.topic, number, 20) for number in range(PARTITIONS)]
    for future in admin.delete_records(places).values():
        future.result(SECONDS)
    with LocalJob(scene) as job:
        job.run_until(lambda: len(job.errors) == PARTITIONS)
        assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_SOURCE}
        assert all("were deleted before they were read" in error.problem for error in job.errors.values())
    assert scene.received(scene.targets[0]) == scene.expected(range(20))


def test_messages_of_a_partition_that_was_empty_and_are_deleted_before_they_are_read_stop(
    scene: Scene, admin: AdminClient
) -> None:
    """The offset before the first message is committed, too."""
    scene.send([0, 2])  # to partition 0
    with LocalJob(scene) as job:
        job.run_until(lambda: count(scene, admin) == 2)
        job.run_until(lambda: job.committed(1) is not None)
    scene.send([1, 3])
    place = TopicPartition(scene.topic, 1, 1)
    for future in admin.delete_records([place]).values():
        future.result(SECONDS)
    with LocalJob(scene) as job:
        job.run_until(lambda: bool(job.errors))
        assert job.errors.keys() == {f"first/{scene.topic}-1"}
        assert {error.code for error in job.errors.values()} == {Code.TRANSFORM_SOURCE}
    assert scene.received(scene.targets[0]) == scene.expected([0, 2])


@pytest.mark.parametrize("is_known", [True, False], ids=["of-another-topic", "of-none"])
def test_a_schema_that_is_none_of_the_topics_stops_at_its_message(
    scene: Scene,
    admin: AdminClient,
    is_known: bool,  # noqa: FBT001 - a parameter
) -> None:
    """`mail` is masked by no step. All messages before it are sent."""
    other = with_column("mail", instead="email")
    _, schema_id = scene.register(other, f"{scene.topic}-other") if is_known else (0, 999_999)
    key_id, _ = scene.register()
    scene.send([0])
    row = {("mail" if name == "email" else name): value for name, value in ORDER.items()}
    value = wire.header(schema_id) + encode(other, envelope(None, row, "c"))
    produce(scene, wire.header(key_id) + encode(KEY, {"id": 0}), value)
    scene.send([22])
    with LocalJob(scene) as job:
        job.run_until(lambda: bool(job.errors) and count(scene, admin) == 1)
        [error] = job.errors.values()
    assert error.code is Code.TRANSFORM_FAILED
    assert f"the schema {schema_id} of its value is none of the topic's" in error.problem
    assert scene.received(scene.targets[0]) == scene.expected([0])


def test_a_worker_that_starts_waits_for_the_registry(scene: Scene, admin: AdminClient, registry: Registry) -> None:
    scene.send(range(20))
    registry.port = int(registry.url.rpartition(":")[2])
    with LocalJob(scene) as job:
        job.planner.plan_batch()
        registry.stop()
        try:
            for _ in range(2):
                job.errors.clear()
                job.run_batch()
                assert {error.code for error in job.errors.values()} == {Code.REGISTRY_UNREACHABLE}
        finally:
            registry.start()
        job.run_until(lambda: count(scene, admin) == 20)
    assert scene.received(scene.targets[0]) == scene.expected(range(20))


def test_a_new_schema_waits_for_the_registry(scene: Scene, admin: AdminClient, registry: Registry) -> None:
    """Messages of schemas that are known go on without it."""
    scene.send(range(20))
    registry.port = int(registry.url.rpartition(":")[2])
    with LocalJob(scene) as job:
        job.run_until(lambda: count(scene, admin) == 20)
        scene.send(range(20, 40))
        scene.send(range(40, 60), schema=with_column("note"))
        registry.stop()
        try:
            job.run_until(lambda: len(job.errors) == PARTITIONS)
            assert {error.code for error in job.errors.values()} == {Code.REGISTRY_UNREACHABLE}
        finally:
            registry.start()
        assert count(scene, admin) == 40
        job.run_until(lambda: count(scene, admin) == 60)
