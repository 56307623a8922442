"""More partitions under load: the job stops, `state reshard` deals its state out again, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from cdc_common.errors.codes import Code
from cdc_common.messages.topics import raw_topic
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from dev.local_stack.demo import shop
from dev.local_stack.demo.load import Load
from dev.local_stack.servers.programs import environment_of
from tests.support.e2e.drained import read_all_changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

RATE = 100.0
LOAD_SECONDS = 110.0
NOTICED_SECONDS = 75.0  # a publisher looks once a minute
PARTITIONS = 5


def test_more_partitions_under_load(
    stack: Stack,
    client: CqlClient,
    markers: shop.Markers,
    open_reader: Callable[[str], ChangeReader],
) -> None:
    reader, history = open_reader(shop.KEYSPACE), History()
    read_all_changes(reader, markers, history)  # the topics are there
    load = Load(client, RATE, LOAD_SECONDS, seed=time.time_ns())
    load.start()
    time.sleep(5)
    admin = AdminClient({"bootstrap.servers": stack.servers.kafka})
    topic = raw_topic(stack.servers.topic_prefix, shop.KEYSPACE, "orders")
    admin.create_partitions([NewPartitions(topic, PARTITIONS)])[topic].result()
    noticed = time.monotonic() + NOTICED_SECONDS
    wait_until(lambda: Code.RAW_PARTITIONS_CHANGED.text in stack.materializer.output(), 60)
    assert stack.materializer.is_running  # for the other tables
    stack.materializer.stop()
    wait_until(lambda: "raw topic has more partitions" in stack.publishers[0].output(), NOTICED_SECONDS)
    time.sleep(max(0.0, noticed - time.monotonic()))
    assert load.is_running

    for point in ("before_switch", "in_backlog"):
        assert reshard(stack, CDC_FAULT=point).returncode == -signal.SIGKILL
    done = reshard(stack)
    assert done.returncode == 0, done.stdout + done.stderr
    stack.materializer.start()

    load.wait()
    assert load.error is None
    read_all_changes(reader, markers, history)
    assert list(history.problems()) == []
    result = compare(client, history, [(shop.KEYSPACE, table) for table in shop.MARKED])
    assert result.differences == []
    assert min(result.tables.values()) > 0
    assert stack.materializer.is_running


def reshard(stack: Stack, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
    return subprocess.run(
        [sys.executable, "-m", "materializer", "state", "reshard", "shop.orders"],
        env={**kept, **environment_of(stack.materializer.settings), **environment},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)
