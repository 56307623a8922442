"""While no broker answers, a worker's log says so from time to time, and not at each attempt of each client."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.network import free_ports
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions, RawReader, ReadBudget

if TYPE_CHECKING:
    import pytest

SECONDS = 2.0  # over a hundred attempts


def test_only_the_reader_logs_that_no_broker_answers(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = [type(log_filter)() for log_filter in LIBRDKAFKA_LOGGER.filters if isinstance(log_filter, logging.Filter)]
    monkeypatch.setattr(LIBRDKAFKA_LOGGER, "filters", fresh)
    settings = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}")
    positions = GroupPositions(settings, "group")
    reader = RawReader(settings, "group", 100)
    reader.add({RawPartition("cdc.raw.shop.orders", 0): 0})
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert not reader.read(ReadBudget(100, 1000), 0.2).records
    reader.close()
    positions.consumer.close()
    assert len([record for record in caplog.records if "Connection refused" in record.getMessage()]) == 1
    assert "rdkafka" not in capfd.readouterr().err
