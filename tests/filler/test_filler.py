"""The filler beside a real Cassandra: its keyspace, its rate, its end."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra.cluster import Session

    from local_stack.interfaces import CassandraServers

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 120.0


class FillerProcess:
    def __init__(self, log: Path, settings: dict[str, object]) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "filler", *(f"--set={name}={value}" for name, value in settings.items()), "run"],
                cwd=ROOT,
                stdout=file,
                stderr=file,
            )

    def log(self) -> str:
        return self._log.read_text()

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while '"ready"' not in self.log():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(READY_SECONDS)


@pytest.fixture
def filler(cassandra: CassandraServers, tmp_path: Path) -> Iterator[FillerProcess]:
    process = FillerProcess(
        tmp_path / "filler.log",
        {
            "cassandra.contact_points": cassandra.contact_points[0],
            "cassandra.port": cassandra.port,
            "filler.keyspace": "filler_test",
            "filler.bytes_per_second": 20_000,
            "filler.write_bytes": 4_000,
            "filler.ttl_seconds": 60,
        },
    )
    yield process
    process.process.kill()
    process.process.wait()


@pytest.mark.servers
def test_it_makes_its_table_writes_at_its_rate_and_stops(filler: FillerProcess, cql: Session) -> None:
    filler.wait_ready()
    datacenter = cql.execute("SELECT data_center FROM system.local").one().data_center
    [keyspace] = cql.execute("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'filler_test'")
    assert dict(keyspace.replication) == {
        "class": "org.apache.cassandra.locator.NetworkTopologyStrategy",
        datacenter: "1",
    }
    [table] = cql.execute("SELECT cdc FROM system_schema.tables WHERE keyspace_name = 'filler_test'")
    assert table.cdc
    started = time.monotonic()
    seen = set()
    while time.monotonic() - started < 4:
        row = cql.execute("SELECT writetime(filling) AS at, ttl(filling) AS ttl, filling FROM filler_test.filler").one()
        if row is not None:
            assert len(row.filling) == 4_000
            assert row.ttl <= 60
            seen.add(row.at)
        time.sleep(0.02)
    assert 10 <= len(seen) <= 30  # 5 a second
    assert filler.stop() == 0
    assert "Traceback" not in filler.log()
    assert cql.execute("SELECT count(*) FROM filler_test.filler").one().count == 1
    cql.execute("DROP KEYSPACE filler_test")


@pytest.mark.servers
def test_a_replication_that_is_not_this_datacenters_is_mended(
    cql: Session, cassandra: CassandraServers, tmp_path: Path
) -> None:
    cql.execute("CREATE KEYSPACE filler_old WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    process = FillerProcess(
        tmp_path / "filler.log",
        {
            "cassandra.contact_points": cassandra.contact_points[0],
            "cassandra.port": cassandra.port,
            "filler.keyspace": "filler_old",
        },
    )
    try:
        process.wait_ready()
        [keyspace] = cql.execute("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = 'filler_old'")
        assert keyspace.replication["class"].endswith("NetworkTopologyStrategy")
        assert process.stop() == 0
    finally:
        process.process.kill()
        process.process.wait()
        cql.execute("DROP KEYSPACE filler_old")


def test_without_cassandra_it_says_so(tmp_path: Path) -> None:
    process = FillerProcess(tmp_path / "filler.log", {"cassandra.port": 1, "cassandra.connect_timeout_seconds": 2})
    assert process.process.wait(READY_SECONDS) == 3
    assert "CDC-010" in process.log()
    assert "Traceback" not in process.log()
