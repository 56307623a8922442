"""After a failure, a new client asks: the old one may wait for minutes for what it was told when a broker woke up."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition

from cdc_program.errors import CdcError, Code
from cdc_program.settings import KafkaSettings
from materializer.kafka import GroupPositions, Topics, positions, topics
from materializer.records import RawPartition, TopicShape

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC = "cdc.raw.shop.orders"
TIMED_OUT, NOT_ALLOWED = KafkaError._TIMED_OUT, KafkaError.TOPIC_AUTHORIZATION_FAILED


class Description(NamedTuple):
    partitions: tuple[int, ...] = (0, 1)
    topic_id: str = "id"


class FakeAdmin:
    """Answers with an error, or well."""

    def __init__(self, error: int | None) -> None:
        self.error = error

    def describe_topics(self, names: TopicCollection, request_timeout: float) -> dict[str, Future[Description]]:
        assert request_timeout <= 30
        return {name: self._answer() for name in names.topic_names}

    def list_topics(self, timeout: float) -> None:
        assert timeout
        self._answer().result()

    def _answer(self) -> Future[Description]:
        answer: Future[Description] = Future()
        if self.error is None:
            answer.set_result(Description())
        else:
            answer.set_exception(KafkaException(KafkaError(self.error)))
        return answer


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[FakeAdmin]]:
    """Have the clients answer with these errors, each client with the next one; the clients made."""

    def use(*errors: int | None) -> list[FakeAdmin]:
        made: list[FakeAdmin] = []

        def make(_settings: KafkaSettings) -> FakeAdmin:
            made.append(FakeAdmin(errors[len(made)]))
            return made[-1]

        monkeypatch.setattr(topics, "_client", make)
        return made

    return use


def test_shapes_are_asked_of_a_new_client_after_a_timeout(answers: Callable[..., list[FakeAdmin]]) -> None:
    made = answers(TIMED_OUT, None)
    asked = Topics(KafkaSettings())
    [error] = asked.each_shape([TOPIC]).values()
    assert isinstance(error, CdcError)
    assert error.code is Code.KAFKA_UNREACHABLE
    assert asked.each_shape([TOPIC]) == {TOPIC: TopicShape(2, "id")}
    assert asked.each_shape([TOPIC]) == {TOPIC: TopicShape(2, "id")}
    assert len(made) == 2


def test_a_refusal_keeps_the_client(answers: Callable[..., list[FakeAdmin]]) -> None:
    made = answers(NOT_ALLOWED)
    asked = Topics(KafkaSettings())
    for _ in range(2):
        [error] = asked.each_shape([TOPIC]).values()
        assert isinstance(error, CdcError)
        assert error.code is Code.KAFKA_REFUSED
    assert len(made) == 1


def test_other_questions_are_asked_of_a_new_client_too(answers: Callable[..., list[FakeAdmin]]) -> None:
    made = answers(TIMED_OUT, TIMED_OUT, None)
    asked = Topics(KafkaSettings())
    for expected in (2, 3):
        with pytest.raises(CdcError):
            asked.partition_counts()
        assert len(made) == expected


def test_positions_are_asked_of_a_new_consumer_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakeConsumer] = []

    class FakeConsumer:
        def __init__(self, _properties: object) -> None:
            made.append(self)

        def committed(self, asked: list[TopicPartition], _timeout: float) -> list[TopicPartition]:
            if self is made[0]:
                raise KafkaException(KafkaError(TIMED_OUT))
            return asked

    monkeypatch.setattr(positions, "Consumer", FakeConsumer)
    group = GroupPositions(KafkaSettings(), "g")
    raw_partition = RawPartition(TOPIC, 0)
    with pytest.raises(KafkaException):
        group.read([raw_partition])
    assert group.read([raw_partition]) == {raw_partition: None}
    assert group.read_each([raw_partition]) == {raw_partition: None}
    assert len(made) == 2
