"""Kafka is away under load, and the publisher changes to the spool in the middle: each write comes out once.

No two values are equal, so that each write is a change, and each is counted.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from cassandra.concurrent import execute_concurrent_with_args

from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.history import History
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from tests.support.e2e.publisher_status import read_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.cql import CqlClient

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(1500)]

TABLES = ("a", "b", "c")
KEYS = 700  # of each table; all but the first writes are overwrites
AT_ONCE = 150  # fewer than keys: no key is written twice at the same time
RATE = 600.0
PADDING = "x" * 1500
TOTAL_MIB, SEGMENT_MIB = 16, 1
SPOOL_MIB = 2000
BEFORE_SECONDS, AWAY_SECONDS, AFTER_SECONDS = 6.0, 40.0, 8.0
SPOOLED, SPOOLED_SECONDS = 10, 300.0  # segments
DRAINED_SECONDS = 600.0
SIMPLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"


@pytest.fixture
def stack() -> Iterator[Stack]:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS, commitlog_segment_mib=SEGMENT_MIB, cdc_total_space_mib=TOTAL_MIB
    )
    settings = {
        "node.cdc_total_space_mib": TOTAL_MIB,
        "node.commitlog_segment_mib": SEGMENT_MIB,
        "publisher.spool_max_mib": SPOOL_MIB,
    }
    with Stack(options=options, settings=settings) as running:
        yield running


class CountedLoad:
    """Writes number after number: `numbers[table]` are those that Cassandra has taken. A refused one is written again,
    under the same timestamp.
    """

    def __init__(self, client: CqlClient) -> None:
        self._session = client._session
        self._statements = {
            table: self._session.prepare(f"UPDATE counted.{table} USING TIMESTAMP ? SET n = ?, v = ? WHERE p = ?")
            for table in TABLES
        }
        self._base = time.time_ns() // 1000
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.count = 0
        self.refused = 0
        self.error: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        if self.error is not None:
            raise self.error

    def numbers(self, table: str) -> range:
        return range(TABLES.index(table), self.count, len(TABLES))

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._stop.is_set():
                self._write(range(self.count, self.count + AT_ONCE))
                self.count += AT_ONCE
                due = max(due + AT_ONCE / RATE, time.monotonic() - 1.0)
                time.sleep(max(0.0, due - time.monotonic()))
        except Exception as error:  # noqa: BLE001 - for the test's own thread
            self.error = error

    def _write(self, numbers: range) -> None:
        left = list(numbers)
        while left:
            failed = []
            for offset, table in enumerate(TABLES):
                own = [number for number in left if number % len(TABLES) == offset]
                arguments = [(self._base + number, number, PADDING, number // len(TABLES) % KEYS) for number in own]
                results = execute_concurrent_with_args(
                    self._session, self._statements[table], arguments, raise_on_first_error=False
                )
                failed += [number for number, (is_done, _) in zip(own, results, strict=True) if not is_done]
            self.refused += len(failed)
            left = failed
            if left:
                time.sleep(0.2)


@pytest.mark.parametrize("repetition", range(3))
def test_no_write_is_missing_after_an_outage_with_a_change_to_the_spool(stack: Stack, repetition: int) -> None:
    pick = random.Random(repetition)
    servers = stack.servers
    with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
        client.execute(f"CREATE KEYSPACE counted WITH replication = {SIMPLE}")
        for table in TABLES:
            client.execute(f"CREATE TABLE counted.{table} (p int PRIMARY KEY, n bigint, v text) WITH cdc = true")
        load = CountedLoad(client)
        load.start()
        time.sleep(BEFORE_SECONDS)
        stack.kafka.kill()
        time.sleep(pick.uniform(0.2, 0.6) * AWAY_SECONDS)
        change_to_spool(stack, is_killed=repetition % 2 == 1)
        shown = wait_for_the_spool(stack)
        stack.kafka.start()
        time.sleep(AFTER_SECONDS)
        load.stop()
        log.info("%d writes, %d refused at first; before Kafka was back: %s", load.count, load.refused, shown)
        with ChangeReader.of_keyspace(servers, "counted") as reader:
            check(reader, load)
    stack.check()


def change_to_spool(stack: Stack, *, is_killed: bool) -> None:
    publisher = stack.publishers[0]
    (publisher.kill if is_killed else publisher.stop)()
    publisher.settings["publisher.on_full"] = "spool"
    publisher.start_process()  # it is ready only once Kafka is back


def wait_for_the_spool(stack: Stack) -> dict[str, Any]:
    """The status once so many segments have moved to the spool. The publisher serves it while it waits for Kafka."""
    deadline = time.monotonic() + SPOOLED_SECONDS
    while True:
        assert time.monotonic() < deadline, "cdc_raw does not fill up"
        time.sleep(1.0)
        with suppress(OSError):
            shown = read_status(stack)
            if shown["spooled"] >= SPOOLED:
                return shown


def check(reader: ChangeReader, load: CountedLoad) -> None:
    """Each number has come out once, and the chain of each key is unbroken."""
    wanted = {table: set(load.numbers(table)) for table in TABLES}
    found: dict[str, Counter[int]] = {table: Counter() for table in TABLES}
    history = History()
    deadline = time.monotonic() + DRAINED_SECONDS
    while any(wanted[table] - found[table].keys() for table in TABLES):
        missing = {table: sorted(wanted[table] - found[table].keys()) for table in TABLES}
        assert time.monotonic() < deadline, {table: (len(rows), rows[:20]) for table, rows in missing.items()}
        changes = reader.poll(1.0)
        history.add(changes)
        for change in changes:
            if change.value is not None:
                found[change.table][change.value["after"]["n"]] += 1
    assert list(history.problems()) == []
    for table in TABLES:
        assert found[table] == Counter(wanted[table])
