"""The programs' words for Kafka's errors, on real brokers that make them."""

from __future__ import annotations

import secrets
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from dev.local_stack.servers.kafka import KafkaBroker
from dev.verify.chaos.matrix import make_setup, produce
from materializer.records import RawPartition
from materializer.worker.open_partitions import OpenPartitions
from publisher.inflight import PendingPosition
from publisher.kafka.sender import Sender
from publisher.kafka.unread import GroupReader
from stream_runtime.exactly_once.position import Position
from stream_runtime.kafka import (
    FencingProducer,
    GroupPositions,
    RawReader,
    ReadBudget,
    TopicReader,
    Topics,
    driver_errors,
    send_all,
)
from stream_runtime.records import Message
from tests.support.second_broker import REPLICATED, SecondBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.materializer.protocol_run import Setup

pytestmark = pytest.mark.servers
RIGHTS = "Grant the program's user the rights listed in docs/guides/secure.md."
PASSWORD = secrets.token_hex(8)
SECONDS = 60.0


def error_of(call: Callable[[], object]) -> CdcError:
    with pytest.raises(CdcError) as raised, driver_errors("do it"):
        call()
    return raised.value


def make_topic(settings: KafkaSettings, name: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    admin.create_topics([NewTopic(name, 1, 1, config=config)])[name].result()


def delete_topic(settings: KafkaSettings, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    admin.delete_topics([name])[name].result()


def open_producer(settings: KafkaSettings, group: str, raw: RawPartition) -> FencingProducer:
    return FencingProducer(settings, group, str(raw), GroupPositions(settings, group).consumer)


class TestWithoutRights:
    """A user who may log in and has no other right."""

    @pytest.fixture(scope="class")
    def settings(self) -> Iterator[KafkaSettings]:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        login = f'username="admin" password="{PASSWORD}" user_admin="{PASSWORD}" user_nobody="{PASSWORD}"'
        with KafkaBroker(
            settings={
                "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "PLAINTEXT",
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.plaintext.plain.sasl.jaas.config": f"{module} required {login};",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
            }
        ) as broker:
            yield self.login(broker.bootstrap_servers, "nobody")

    def login(self, servers: str, user: str, password: str = PASSWORD) -> KafkaSettings:
        fields: dict[str, Any] = {"sasl_mechanism": "PLAIN", "sasl_username": user, "sasl_password": password}
        return KafkaSettings(bootstrap_servers=servers, security_protocol="SASL_PLAINTEXT", **fields)

    def test_each_missing_right_is_named(self, settings: KafkaSettings) -> None:
        topics, raw = Topics(settings), RawPartition("orders", 0)
        calls: dict[str, Callable[[], object]] = {
            "a right on the topic": lambda: topics.make_change_topic("orders"),
            "a right on the topic (TOPIC_AUTHORIZATION_FAILED": lambda: topics.shapes(["orders"]),
            "a right on the transactional id": lambda: open_producer(settings, "g", raw),
            "a right on the consumer group": lambda: GroupPositions(settings, "g").read([raw]),
            "a right on the consumer group (": lambda: GroupReader(settings, "g", "orders", 1).read(),
        }
        for words, call in calls.items():
            error = error_of(call)
            assert error.code is Code.KAFKA_REFUSED, error
            assert f"the user lacks {words}" in error.problem, error
            assert error.fix == RIGHTS

    def test_a_refused_login_is_not_answered_with_rights(self, settings: KafkaSettings) -> None:
        from publisher.kafka.topic_admin import TopicAdmin  # noqa: PLC0415 - the only test of it here

        wrong = self.login(settings.bootstrap_servers, "nobody", "wrong")
        error = error_of(TopicAdmin(wrong).check_reachable)
        assert "the brokers refuse the login (_AUTHENTICATION" in error.problem
        assert "kafka.sasl_password" in error.fix


class TestTopics:
    """Topics that are missing, deleted or too small."""

    @pytest.fixture
    def settings(self, kafka: KafkaBroker) -> KafkaSettings:
        return KafkaSettings(bootstrap_servers=kafka.bootstrap_servers)

    def test_a_deleted_topic_is_named_as_one(self, settings: KafkaSettings, topic_prefix: str) -> None:
        make_topic(settings, topic_prefix)
        raw = RawPartition(topic_prefix, 0)
        producer = open_producer(settings, topic_prefix, raw)
        producer.begin()
        producer.send(Message(topic_prefix, 0, b"k", b"v"))
        producer.send_positions({raw: Position(1, "", 1)})
        producer.commit()
        delete_topic(settings, topic_prefix)
        found = [error_of(lambda: Topics(settings).shapes([topic_prefix]))]

        def send() -> None:
            producer.begin()
            producer.send(Message(topic_prefix, 0, b"k", b"v"))
            producer.commit()

        found.append(error_of(send))
        for error in found:
            assert "does not exist" in error.problem, error
            assert "the topic was deleted" in error.fix, error
            assert "rights" not in error.fix
        producer.abandon()

    def test_a_message_too_large_names_the_limit(self, settings: KafkaSettings, topic_prefix: str) -> None:
        make_topic(settings, topic_prefix, **{"max.message.bytes": "1000"})
        large = Message(topic_prefix, 0, b"k", secrets.token_bytes(5000))
        producer = open_producer(settings, topic_prefix, RawPartition(topic_prefix, 0))
        producer.begin()
        producer.send(large)
        transactional = error_of(producer.commit)
        assert transactional.code is Code.MESSAGE_TOO_LARGE
        plain = error_of(lambda: send_all(settings, [large]))
        assert "a message is larger than the topic allows (MSG_SIZE_TOO_LARGE" in plain.problem
        sender = Sender(settings)
        assert sender.send(topic_prefix, b"k", large.value or b"", PendingPosition(1, 1, outstanding=1))
        of_publisher = error_of(lambda: poll_for(sender, SECONDS))
        assert f"(topic {topic_prefix}): a message is larger than the topic allows" in of_publisher.problem
        for error in (transactional, plain, of_publisher):
            assert "max.message.bytes" in error.fix
        producer.abandon()


def poll_for(sender: Sender, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        sender.poll(1.0)


@pytest.mark.exhaustive
def test_a_broker_that_goes_and_comes_back(topic_prefix: str, tmp_path: Path) -> None:
    with KafkaBroker() as broker:
        setup = make_setup(broker.bootstrap_servers, topic_prefix, tmp_path, messages=20)
        kafka = setup.plan().kafka.model_copy(update={"connect_timeout_seconds": 3.0})
        plan, open_partitions, records = setup.plan(), OpenPartitions(), setup.records()
        topics, reader, whole = Topics(kafka), RawReader(kafka, "g", 100), TopicReader(kafka, setup.raw.topic)
        open_partitions.process(plan, setup.raw, records[:5])
        assert whole.read_messages()
        broker.kill()
        calls: list[Callable[[], object]] = [
            lambda: open_partitions.process(plan, setup.raw, records[5:10]),
            topics.partition_counts,
            lambda: reader.positions([setup.raw]),
            whole.read_messages,
        ]
        for call in calls:
            error = error_of(call)
            assert error.code is Code.KAFKA_UNREACHABLE, error
            assert "kafka.bootstrap_servers" in error.fix or "just started" in error.fix, error
        broker.start()
        until_it_works(lambda: open_partitions.process(plan, setup.raw, records))
        assert topics.partition_counts()
        until_it_works(lambda: reader.positions([setup.raw]))
        assert whole.read_messages() == []
        open_partitions.close_all()
        reader.close()
        setup.check()


def until_it_works(call: Callable[[], object]) -> list[CdcError]:
    """Repeat the call as the job does. All of its errors heal by themselves."""
    errors: list[CdcError] = []
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            with driver_errors("do it"):
                call()
        except CdcError as error:
            errors.append(error)
            time.sleep(0.2)
        else:
            assert {error.code for error in errors} <= {Code.KAFKA_UNREACHABLE}, errors
            return errors
    raise AssertionError(errors)


@pytest.mark.exhaustive
def test_a_coordinator_that_moves(topic_prefix: str, tmp_path: Path) -> None:
    """The second broker leads what belongs to the group and its producer, and is killed in the middle."""
    with KafkaBroker(settings=REPLICATED) as first:
        alone = make_setup(first.bootstrap_servers, topic_prefix, tmp_path, messages=0)
        check_while_it_moves(first, alone)


def check_while_it_moves(first: KafkaBroker, alone: Setup) -> None:
    """`alone`: its topics are on the first broker alone."""
    with SecondBroker(first) as second:
        setup = alone._replace(bootstrap=f"{first.bootstrap_servers},{second.bootstrap_servers}")
        plans = [setup.plan(group_id=f"{setup.prefix}-{number}") for number in range(6)]
        open_partitions = OpenPartitions()
        with closing(RawReader(plans[0].kafka, "g", 100)) as reader:
            produce(setup, 40)
            records = setup.records()
            until_it_works(lambda: open_partitions.process(plans[0], setup.raw, records[:20]))
            others = [open_producer(plan.kafka, plan.materializer.group_id, setup.raw) for plan in plans[1:]]
            second.kill()
            until_it_works(lambda: open_partitions.process(plans[0], setup.raw, records))
            for plan, producer in zip(plans[1:], others, strict=True):
                assert producer is not None
                until_it_works(lambda plan=plan: commit_once(plan.kafka, plan.materializer.group_id, setup.raw))  # type: ignore[misc]
            reader.add({setup.raw: 0})
            read = reader.read(ReadBudget(100, 1 << 20), 30.0)
            assert not read.errors
        open_partitions.close_all()
        alone.check()


def commit_once(settings: KafkaSettings, group: str, raw: RawPartition) -> None:
    producer = open_producer(settings, group, raw)
    producer.begin()
    producer.send_positions({raw: Position(1, "", 1)})
    producer.commit()
