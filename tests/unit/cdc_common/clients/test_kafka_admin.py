"""Requests to the admin client: answers that do not come, and topics that another program has created."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from cdc_common.clients.kafka_admin import answer_of, create_topic
from cdc_common.clients.kafka_errors import is_transient


def answered(error: int | None) -> Future[Any]:
    answer: Future[Any] = Future()
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(KafkaException(KafkaError(error)))
    return answer


def admin_that_answers(error: int | None) -> mock.Mock:
    admin = mock.Mock()
    admin.create_topics.side_effect = lambda topics: {topics[0].topic: answered(error)}
    return admin


def test_an_answer_that_does_not_come_is_a_passing_error() -> None:
    silent: Future[Any] = Future()
    with pytest.raises(KafkaException) as caught:
        answer_of(silent, 0.01)
    assert is_transient(caught.value.args[0])


def test_a_topic_that_exists_is_no_error() -> None:
    topic = NewTopic("t", 1, 1)
    assert create_topic(admin_that_answers(None), topic, 1)
    assert not create_topic(admin_that_answers(KafkaError.TOPIC_ALREADY_EXISTS), topic, 1)
    with pytest.raises(KafkaException):
        create_topic(admin_that_answers(KafkaError.INVALID_REPLICATION_FACTOR), topic, 1)
