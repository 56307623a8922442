"""A publisher that starts while Kafka is away: an error at its first start; later it waits and spools."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from dev.local_stack.servers.kafka import KafkaBroker
from publisher.inflight import PendingPosition
from publisher.kafka.topic_admin import TopicAdmin
from publisher.log.spool import SPOOL_PERCENT
from tests.support.publisher.publisher_without_kafka import CONNECT_SECONDS, FAILED_CALLS, FIRST, PublisherWithoutKafka

if TYPE_CHECKING:
    from pathlib import Path


def test_at_the_first_start_it_is_an_error(tmp_path: Path) -> None:
    started = PublisherWithoutKafka(tmp_path)
    with pytest.raises(CdcError, match="refused") as raised:
        started.publisher.open()
    assert raised.value.code is Code.KAFKA_UNREACHABLE
    assert len(started.seen) == 1


def test_one_that_has_published_waits_and_guards_cdc_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = PublisherWithoutKafka(tmp_path)
    started.positions.move([PendingPosition(FIRST - 1, 100, is_end=True)])
    began = time.monotonic()
    started.publisher.open()
    assert time.monotonic() - began > FAILED_CALLS * CONNECT_SECONDS
    first, last = started.seen
    assert first.waiting.startswith("Kafka has not answered for ")  # it was being asked
    assert first.spooled > 0  # in the meantime
    assert 0 < last.used < first.full_at * SPOOL_PERCENT // 100
    assert last.waiting.startswith("CDC-020 Kafka at 127.0.0.1:")
    assert last.lag_bytes > 0
    assert last.spooled == len(started.spool.files())
    started.publisher._housekeeping.serve(0)
    said = capsys.readouterr()
    assert "CDC-020" in said.out + said.err


@pytest.mark.servers
@pytest.mark.exhaustive
def test_a_wrong_password_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{module} required username="admin" password="right" user_admin="right";'
        ),
    }
    broker = KafkaBroker(settings=settings, folder=tmp_path / "kafka")
    try:
        broker.start()
        login = KafkaSettings(
            bootstrap_servers=broker.bootstrap_servers,
            security_protocol="SASL_PLAINTEXT",
            sasl_username="admin",
            sasl_password=SecretStr("right"),
            connect_timeout_seconds=5,
        )
        TopicAdmin(login).check_reachable()
        with pytest.raises(CdcError) as raised:
            TopicAdmin(login.model_copy(update={"sasl_password": SecretStr("wrong")})).check_reachable()
        assert raised.value.code is Code.KAFKA_REFUSED
        assert "wrong" not in str(raised.value)
    finally:
        broker.close()
