"""The properties that every Kafka client is given."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from pydantic import SecretStr

from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER, client_config
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.network import free_ports
from tests.support.e2e.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

LOGIN = {"sasl_username": "user", "sasl_password": "geheim"}


def test_plain_clients_are_given_no_credentials() -> None:
    config = client_config(KafkaSettings(sasl_username="user", sasl_password=SecretStr("geheim")))
    assert config["bootstrap.servers"] == "127.0.0.1:9092"
    assert not any(key.startswith(("sasl", "ssl")) for key in config)


@pytest.mark.parametrize(("protocol", "tls"), [("SASL_PLAINTEXT", False), ("SASL_SSL", True)])
def test_credentials_are_given_but_not_shown(protocol: str, *, tls: bool, tmp_path: Path) -> None:
    ca_file = Authority(tmp_path).file
    settings = KafkaSettings.model_validate(
        {
            "security_protocol": protocol,
            "sasl_username": "user",
            "sasl_password": "geheim",
            "ssl_ca_file": ca_file,
        }
    )
    config = client_config(settings)
    assert config["sasl.password"] == "geheim"
    assert config["sasl.username"] == "user"
    assert config.get("ssl.ca.location") == (str(ca_file) if tls else None)
    assert "geheim" not in repr(config)
    assert "geheim" not in f"{config}"


def test_librdkafka_takes_the_properties() -> None:
    settings = KafkaSettings(security_protocol="SASL_PLAINTEXT", sasl_username="user", sasl_password=SecretStr("x"))
    producer = Producer(client_config(settings), logger=LIBRDKAFKA_LOGGER)
    assert producer.flush(0) == 0


def test_a_broker_that_is_away_is_not_told_again_and_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other tests may just have had the same message.
    fresh = [type(log_filter)() for log_filter in LIBRDKAFKA_LOGGER.filters if isinstance(log_filter, logging.Filter)]
    monkeypatch.setattr(LIBRDKAFKA_LOGGER, "filters", fresh)
    settings = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}")
    producers = [Producer(client_config(settings), logger=LIBRDKAFKA_LOGGER) for _ in range(2)]
    deadline = time.monotonic() + 2.5
    while time.monotonic() < deadline:
        for producer in producers:
            producer.poll(0.1)
    refused = [record for record in caplog.records if "Connection refused" in record.getMessage()]
    assert len(refused) == 1
    [again] = [logging.makeLogRecord(record.__dict__) for record in refused]
    told = []
    for seconds in (29, 31, -60):
        again.created += seconds
        told.append(bool(LIBRDKAFKA_LOGGER.filter(again)))
    assert told == [False, True, True]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"security_protocol": "SSL", "ssl_ca_file": "/none.pem"}, "/none.pem: No such file"),
        ({"security_protocol": "SSL", "ssl_identity_file": __file__}, "ssl.certificate.location failed"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA512", **LOGIN}, "SCRAM-SHA512"),
        ({"security_protocol": "SASL_SSL"}, "sasl.username and sasl.password must be set"),
        ({"connect_timeout_seconds": 1e9}, "outside allowed range"),
    ],
)
def test_what_no_client_can_use_is_a_wrong_setting(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(CdcError) as caught:
        client_config(KafkaSettings.model_validate(settings))
    assert caught.value.code is Code.CONFIG_INVALID
    assert reason in caught.value.problem
    assert "geheim" not in str(caught.value)
