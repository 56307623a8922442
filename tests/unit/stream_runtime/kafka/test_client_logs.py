"""While no broker answers, a worker's log says so from time to time, and not at each attempt of each client."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import cdc_native
from cdc_common.clients.kafka import LIBRDKAFKA_LOGGER
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.network import free_ports
from materializer.records import RawPartition
from stream_runtime.kafka import GroupPositions, RawReader, ReadBudget
from stream_runtime.kafka.source_reader import SourceReader

if TYPE_CHECKING:
    from collections.abc import Callable

WHERE = RawPartition("cdc.raw.shop.orders", 0)
SECONDS = 2.0  # over a hundred attempts


def read_raw(settings: KafkaSettings) -> None:
    with closing(RawReader(settings, "group", 100)) as reader:
        reader.add({WHERE: 0})
        read_for_a_while(lambda: reader.read(ReadBudget(100, 1000), 0.2).records)


def read_source(settings: KafkaSettings) -> None:
    with closing(SourceReader(settings, "group")) as reader:
        reader.add(WHERE, 0)
        read_for_a_while(lambda: reader.read(100, 0.2).records)


def read_for_a_while(read: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        assert not read()


@pytest.mark.parametrize("is_native", [True, False])
@pytest.mark.parametrize("read", [read_raw, read_source])
def test_only_the_reader_logs_that_no_broker_answers(
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    read: Callable[[KafkaSettings], None],
    is_native: bool,
) -> None:
    if is_native and not cdc_native.is_enabled():
        pytest.skip("the core is not in use")
    monkeypatch.setattr(cdc_native, "is_enabled", lambda: is_native)
    fresh = [type(log_filter)() for log_filter in LIBRDKAFKA_LOGGER.filters if isinstance(log_filter, logging.Filter)]
    monkeypatch.setattr(LIBRDKAFKA_LOGGER, "filters", fresh)
    settings = KafkaSettings(bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}")
    positions = GroupPositions(settings, "group")
    read(settings)
    positions.consumer.close()
    refused = [
        record.getMessage().split()[0] for record in caplog.records if "Connection refused" in record.getMessage()
    ]
    assert sorted(refused) == (["ERROR", "FAIL"] if is_native else ["FAIL"]), "each kind of line once"
    assert "rdkafka" not in capfd.readouterr().err
