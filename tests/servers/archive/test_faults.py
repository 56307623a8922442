"""A store of S3 that is down, answers 503 or asks to slow down, and a broker that stands still: each message once."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.servers.choice import kafka_broker
from dev.local_stack.servers.s3 import ENVIRONMENT, S3Server
from tests.support.archive.archive_run import ArchiveSetup
from tests.support.archive.faulty_s3 import FaultyS3

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.archive.faulty_s3 import Mode
    from tests.support.schematizer.registry_process import Registry

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

MESSAGES = 200
PAUSE_SECONDS = 1.0  # between two tries of the shares that stopped
FAULTS = [
    pytest.param("down", 20.0, id="down"),
    pytest.param("down", 120.0, id="down for two minutes", marks=pytest.mark.exhaustive),
    pytest.param("unavailable", 20.0, id="503"),
    pytest.param("slow_down", 20.0, id="slow down"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with S3Server(has_conditions=True) as running:
        yield running


@pytest.mark.parametrize(("mode", "seconds"), FAULTS)
def test_a_store_with_faults(
    setup: ArchiveSetup, server: S3Server, mode: Mode, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with FaultyS3(server.port) as link:
        lake = f"lake-{setup.prefix}"
        location = server.location(lake).replace(f"{LOCALHOST}:{server.port}", f"{LOCALHOST}:{link.port}")
        setup = setup._replace(location=location, files=str(server.data / lake))
        setup.send(0, MESSAGES)
        setup.run()
        setup.send(MESSAGES, 2 * MESSAGES)
        link.turn(mode)
        timer = threading.Timer(seconds, link.turn, ("pass",))
        timer.start()
        stops = run_until_done(setup, Code.ARCHIVE_STORE_AWAY)
        timer.join()
        assert link.refused > 0
        if mode != "slow_down":  # the client itself tries again
            assert stops > 0
        setup.check(2 * MESSAGES)


def run_until_done(setup: ArchiveSetup, *codes: Code) -> int:
    """Archive all, with another try after each failure, as the driver does. The number of failures."""
    stops = 0
    while True:
        try:
            setup.run()
        except CdcError as error:
            if error.code not in codes:
                raise
            stops += 1
            time.sleep(PAUSE_SECONDS)
        else:
            return stops


def test_a_broker_that_stands_still(registry: Registry, topic_prefix: str, tmp_path: Path) -> None:
    """It stands still in the middle of a run, for longer than its clients wait for an answer."""
    with kafka_broker() as broker:
        setup = ArchiveSetup(broker.bootstrap_servers, registry.url, topic_prefix, str(tmp_path))
        setup.make_topic()
        setup.send(0, MESSAGES)
        setup.run()
        setup.send(MESSAGES, 2 * MESSAGES)
        frozen = threading.Thread(target=freeze, args=(broker, 30.0))
        frozen.start()
        run_until_done(setup, Code.KAFKA_UNREACHABLE, Code.TRANSACTION_EXPIRED)
        frozen.join()
        setup.check(2 * MESSAGES)


def freeze(broker: KafkaBroker, seconds: float) -> None:
    broker.pause()
    try:
        time.sleep(seconds)
    finally:
        broker.resume()
