"""A state that is fetched slowly keeps only its own raw partition waiting: a real Spark, and an S3 server over a slow
link.
"""

from __future__ import annotations

import itertools
import random
import string
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import pytest

from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.s3 import ENVIRONMENT
from tests.support.http_get import get
from tests.support.materializer.eight_tables import LOADED, NAMES, WAIT_SECONDS, EightTables
from tests.support.schematizer.registry_process import Registry
from tests.support.slow_link import SlowLink

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from dev.local_stack.servers.s3 import S3Server

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

LARGE, *OTHERS = NAMES
ROWS, ROW_CHARACTERS = 60, 400_000  # 24 MB that do not compress much
RATE = 200_000.0  # of each of the 16 reads at once
SLOW_SECONDS = 15.0  # at least, of the restore
MOST_SECONDS = 10.0  # between two changes of a table that does not wait, on a busy machine


@pytest.fixture
def link(s3: S3Server) -> Iterator[SlowLink]:
    with SlowLink(s3.port) as made:
        yield made


@pytest.fixture
def scene(kafka: KafkaBroker, s3: S3Server, link: SlowLink, topic_prefix: str, tmp_path: Path) -> Iterator[EightTables]:
    registry = Registry(tmp_path / "registry.db").start()
    location = s3.location(topic_prefix).replace(str(s3.port), str(link.port))
    assert urlsplit(location).query.count(str(link.port)) == 1
    made = EightTables(kafka.bootstrap_servers, topic_prefix, registry.url, tmp_path, location)
    made.job.environment |= ENVIRONMENT
    try:
        yield made
    finally:
        made.stop()
        registry.stop()


def test_a_raw_partition_that_restores_a_large_state_waits_alone(scene: EightTables, link: SlowLink) -> None:
    scene.start()
    chance = random.Random(1)
    for number in range(ROWS):
        text = "".join(chance.choices(string.ascii_letters, k=ROW_CHARACTERS))
        scene.write(LARGE, text, clustering=LOADED + 1 + number)
        time.sleep(0.1)
    wait_until(lambda: len(scene.received[LARGE]) >= scene.sent[LARGE] - 20, "the large rows", WAIT_SECONDS)

    link.rate = RATE
    before = restores(scene)
    lost = time.time()
    scene.lose_state(LARGE)
    wait_until(lambda: restores(scene) > before, "a restore", WAIT_SECONDS)
    restored = time.time()
    link.rate = None
    scene.finish()

    waits = {name: longest_wait(scene, name, lost, restored) for name in NAMES}
    click.echo(f"\nlongest time between two changes of a table, in seconds: {waits}")
    assert waits[LARGE] > SLOW_SECONDS
    assert max(waits[name] for name in OTHERS) < MOST_SECONDS
    for name in NAMES:
        changes = [received.change for received in scene.received[name]]
        assert len(changes) == scene.sent[name]
        of_load = [change for change in changes if change["after"]["c"] == LOADED]
        assert all(later["before"] == earlier["after"] for earlier, later in itertools.pairwise(of_load))


def restores(scene: EightTables) -> float:
    """How many states the job has restored since it started."""
    name = "cdc_materializer_restores_total "
    return next(
        float(line[len(name) :]) for line in get(scene.port, "/metrics")[1].splitlines() if line.startswith(name)
    )


def longest_wait(scene: EightTables, name: str, begun: float, ended: float) -> float:
    """Seconds between two changes of the table that were received in this time, its ends included."""
    times = [received.at for received in scene.received[name] if begun <= received.at < ended]
    return max(later - earlier for earlier, later in itertools.pairwise([begun, *times, ended]))
