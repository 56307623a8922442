"""Kafka's metadata without a broker, as one gives it that has stood still."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from stream_runtime.kafka import Topics


def test_no_broker_is_a_kafka_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics(KafkaSettings())
    admin = SimpleNamespace(list_topics=lambda **_: SimpleNamespace(brokers={}))
    monkeypatch.setattr(topics, "_admin", admin)
    with pytest.raises(CdcError) as caught:
        topics.check_transaction_timeout(60.0)
    assert caught.value.code is Code.KAFKA_UNREACHABLE
