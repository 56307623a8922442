"""Requests to Kafka's admin client, in the same way in every program. Each raises KafkaException, also if no answer
arrives in time: the client itself would wait longer.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient, NewTopic

T = TypeVar("T")
ASKED_AT_ONCE = 500  # partitions or topics in one request: a busy broker answers for some thousands too late
TOPICS_AT_ONCE = 200  # topics whose settings are asked for in one request


def in_requests(asked: Iterable[T], at_once: int = ASKED_AT_ONCE) -> Iterator[list[T]]:
    """Split what is asked for into requests. Each of them has its own time."""
    rest = iter(asked)
    while batch := list(islice(rest, at_once)):
        yield batch


def answer_of(request: Future[T], seconds: float) -> T:
    """The answer to a request of the client."""
    try:
        return request.result(seconds)
    except TimeoutError as error:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from error  # noqa: SLF001 - the client's own name


def partition_counts(admin: AdminClient, seconds: float) -> dict[str, int]:
    """The number of partitions of each topic that exists."""
    topics = admin.list_topics(timeout=seconds).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}


def create_topic(admin: AdminClient, topic: NewTopic, seconds: float) -> bool:
    """Create a topic. False if it exists already: another program may have created it a moment ago."""
    try:
        answer_of(admin.create_topics([topic])[topic.topic], seconds)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def topic_settings(admin: AdminClient, topics: Iterable[str]) -> Iterator[tuple[str, Future[dict[str, Any]]]]:
    """Ask for the settings of topics: each topic's name, and its future answer. One request asks for TOPICS_AT_ONCE."""
    for asked in in_requests(topics, TOPICS_AT_ONCE):
        answers = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic) for topic in asked])
        for resource, answer in answers.items():
            yield resource.name, answer
