"""A new client asks after a failure; the old one may wait minutes after an answer of a starting broker."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition

from cdc_common.clients.kafka_admin import ASKED_AT_ONCE
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions, RawReader, ReadBudget, Topics, positions, raw_reader, topics
from stream_runtime.kafka.consumers import Polled
from stream_runtime.records import Record, TopicShape

if TYPE_CHECKING:
    from collections.abc import Callable

TOPIC = "cdc.raw.shop.orders"
BUDGET = ReadBudget(100, 1_000_000)
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

        def poll(self, _timeout: float) -> None:
            """It has received no error."""

    monkeypatch.setattr(positions, "Consumer", FakeConsumer)
    group = GroupPositions(KafkaSettings(), "g")
    raw_partition = RawPartition(TOPIC, 0)
    with pytest.raises(KafkaException):
        group.read([raw_partition])
    assert group.read([raw_partition]) == {raw_partition: None}
    assert group.read_each([raw_partition]) == {raw_partition: None}
    assert len(made) == 2


def test_thousands_of_positions_are_asked_for_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy broker does not answer in time for all of them at once."""

    class BusyConsumer:
        def __init__(self, _properties: object) -> None: ...

        def committed(self, asked: list[TopicPartition], _timeout: float) -> list[TopicPartition]:
            if len(asked) > ASKED_AT_ONCE:
                raise KafkaException(KafkaError(TIMED_OUT))
            return asked

        def poll(self, _timeout: float) -> None:
            """It has received no error."""

    monkeypatch.setattr(positions, "Consumer", BusyConsumer)
    raw_partitions = [RawPartition(TOPIC, number) for number in range(4 * ASKED_AT_ONCE + 1)]
    group = GroupPositions(KafkaSettings(), "g")
    assert group.read(raw_partitions) == dict.fromkeys(raw_partitions)
    assert group.read_each(raw_partitions) == dict.fromkeys(raw_partitions)
    assert group.read([]) == {}


def test_thousands_of_topics_and_ends_are_asked_for_in_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    class BusyAdmin:
        def describe_topics(self, asked: TopicCollection, **_: object) -> dict[str, Future[Any]]:
            assert len(asked.topic_names) <= ASKED_AT_ONCE
            return {name: done(SimpleNamespace(partitions=[0], topic_id="id")) for name in asked.topic_names}

        def list_offsets(self, asked: dict[TopicPartition, object]) -> dict[TopicPartition, Future[Any]]:
            assert len(asked) <= ASKED_AT_ONCE
            return {partition: done(SimpleNamespace(offset=partition.partition)) for partition in asked}

    monkeypatch.setattr(topics, "_client", lambda _: BusyAdmin())
    raw_partitions = [RawPartition(TOPIC, number) for number in range(2 * ASKED_AT_ONCE + 1)]
    names = [f"t{number}" for number in range(2 * ASKED_AT_ONCE + 1)]
    asked = Topics(KafkaSettings())
    assert asked.shapes(names) == dict.fromkeys(names, TopicShape(1, "id"))
    assert asked.ends(raw_partitions) == {partition: partition.partition for partition in raw_partitions}
    assert asked.bounds(raw_partitions) == {
        partition: (partition.partition, partition.partition) for partition in raw_partitions
    }
    assert (asked.shapes([]), asked.ends([])) == ({}, {})


def done(answer: object) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(answer)
    return future


class Consumers:
    """Consumers of one raw partition; the first one gives nothing."""

    def __init__(self) -> None:
        self.assigned: list[list[int]] = []

    def __call__(self, _properties: object) -> FakeRawConsumer:
        self.assigned.append([])
        return FakeRawConsumer(self.assigned[-1], is_stuck=len(self.assigned) == 1)


class FakeRawConsumer:
    def __init__(self, assigned: list[int], *, is_stuck: bool) -> None:
        self.assigned = assigned
        self.is_stuck = is_stuck

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned += [partition.offset for partition in partitions]

    def incremental_unassign(self, _partitions: list[TopicPartition]) -> None: ...

    def poll_records(self, _most: int, _most_bytes: int, _seconds: float) -> Polled:
        given, self.assigned[:] = [] if self.is_stuck else [Record(b"k", b"v", at, 1) for at in self.assigned], []
        return Polled([(RawPartition(TOPIC, 0), given)] if given else [], 2 * len(given), [])

    def close(self) -> None: ...


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that have passed."""
    now = [0.0]
    monkeypatch.setattr("stream_runtime.kafka.raw_reader.time.monotonic", lambda: now[0])
    return now


def test_a_consumer_that_does_not_give_what_is_there_is_replaced(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    made = Consumers()
    monkeypatch.setattr(raw_reader, "open_consumer", made)
    raw_partition = RawPartition(TOPIC, 0)
    reader = RawReader(KafkaSettings(), "g", 50)
    reader.add({raw_partition: 5})
    ends = {raw_partition: 6}
    for clock[0], silent, stuck in ((29, [], []), (30, [raw_partition], []), (60, [raw_partition], [raw_partition])):
        assert not reader.read(BUDGET, 0).records
        assert reader.silent() == silent
        assert reader.renew_if_stuck(ends if silent else {}) == stuck
    [record] = reader.read(BUDGET, 0).records[raw_partition]
    assert record.offset == 5
    clock[0] = 120
    assert reader.silent() == [raw_partition]
    assert [reader.renew_if_stuck(ends), reader.renew_if_stuck(ends)] == [[], []], "it has read all that is there"
    assert len(made.assigned) == 2


def test_a_raw_partition_that_was_behind_and_is_read_again_is_not_stuck(
    monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    made = Consumers()
    made(None)  # the next one gives messages
    monkeypatch.setattr(raw_reader, "open_consumer", made)
    raw_partition = RawPartition(TOPIC, 0)
    reader = RawReader(KafkaSettings(), "g", 50)
    reader.add({raw_partition: 5})
    clock[0] = 40
    assert reader.silent() == [raw_partition]
    assert reader.renew_if_stuck({raw_partition: 7}) == []
    assert reader.read(BUDGET, 0).records
    assert reader.renew_if_stuck({raw_partition: 7}) == []
    reader.remove([raw_partition])
    clock[0] = 400
    assert reader.silent() == []
