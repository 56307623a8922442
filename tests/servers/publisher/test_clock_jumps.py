"""A clock that is set, the publisher's and the node's: all is published once, and the status stays plausible."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dev.local_stack.clients.cql import connect
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside
from tests.support.publisher.sent import int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from cdc_common.messages.watermarks import Watermark
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = pytest.mark.servers

DAY = 24 * 3600.0
PER_JUMP, SECONDS = 40, 120.0
JUMPS = (DAY, -DAY)  # ahead, then two days back


def test_the_publishers_clock_jumps(
    publisher: PublisherProcess,
    cql: Session,
    fresh_keyspace: str,
    sent: SentBy,
    watermarks: Callable[[], list[Watermark]],
    tmp_path: Path,
) -> None:
    ahead = tmp_path / "ahead"
    set_clock(ahead, "0")
    publisher.program = [sys.executable, "-m", "tests.support.publisher.shifted_clock", str(ahead), "publisher"]
    cql.execute(f"CREATE TABLE {fresh_keyspace}.t (id int PRIMARY KEY, v text) WITH cdc = true")
    publisher.start(publisher__heartbeat_seconds=1)
    for number, jump in enumerate(JUMPS):
        set_clock(ahead, str(jump))
        cql.execute(f"INSERT INTO {fresh_keyspace}.t (id, v) VALUES ({number}, 'a')")
        # Watermarks go on: one of this clock comes, and the row.
        found = sent(fresh_keyspace, "t", lambda found, number=number: has_row(found, number))
        eventually(partial(has_clock, watermarks, jump))
        eventually(lambda: 0 <= (status(publisher)["lag_seconds"] or 0) < DAY / 2)
    assert sorted(row.key or b"" for row in rows(found)) == [int_value(number) for number in range(len(JUMPS))]
    now = status(publisher)
    assert 0 <= now["lag_seconds"] < DAY / 2
    assert now["seconds_to_full"] is None or now["seconds_to_full"] > 0
    assert now["waiting"] == ""
    assert publisher.get("/health")[0] == 200
    assert "safe to stop" in publisher.command("status")[1].splitlines()[-1]
    assert publisher.stop() == 0


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_the_nodes_clock_jumps(kafka_parts: dict[str, object], sent: SentBy, tmp_path: Path) -> None:
    """Segments are named by the node's clock: it is set while the node runs, and the next start uses the new time."""
    ahead = tmp_path / "ahead"
    environment = {"LD_PRELOAD": str(compiled_shim(tmp_path)), "CLOCK_AHEAD": str(ahead)}
    written: set[bytes] = set()
    options = CassandraOptions(commitlog_segment_mib=1, commitlog_sync_period_ms=SYNC_PERIOD_MS)
    cluster = CassandraCluster(options=options, folder=tmp_path / "cluster")
    [node] = cluster.nodes
    settings = {"node.cdc_raw_directory": node.cdc_raw, "publisher.state_directory": tmp_path / "state"}

    def write() -> None:
        with connect([node.address], node.port) as client:
            for number in range(len(written), len(written) + PER_JUMP):  # some segments
                client.execute(f"INSERT INTO moved.t (id, v) VALUES ({number}, '{'x' * 30_000}')")
                written.add(int_value(number))

    def is_out(found: list[Sent]) -> bool:
        return {raw_message.key for raw_message in found} >= written

    def start() -> None:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            node.start()

    set_clock(ahead, "0")
    cluster.install(cluster.version)
    start()
    with connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE moved WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE moved.t (id int PRIMARY KEY, v text) WITH cdc = true")
    publisher = PublisherProcess(settings_beside(cluster, tmp_path / "state") | settings | kafka_parts, tmp_path)
    try:
        publisher.start()
        for jump in (-DAY, 2 * DAY, 0.0):
            write()
            set_clock(ahead, str(int(jump)))
            write()
            sent("moved", "t", is_out, SECONDS)
            node.stop()
            start()
            write()
            found = sent("moved", "t", is_out, SECONDS)
        times = Counter(row.key for row in rows(found))
        assert set(times) == written
        assert "disappeared" not in publisher.log()
        assert "never completed" not in publisher.log()
        ids = [line["segment"] for line in logged(publisher, "segment finished")]
        assert len(ids) > 3 * len(JUMPS)
        assert ids == sorted(ids)
        assert publisher.stop() == 0
    finally:
        publisher.kill()
        cluster.close()


def set_clock(ahead: Path, seconds: str) -> None:
    """Set the clock atomically: a program that read an empty file would know no time."""
    fresh = ahead.with_suffix(".new")
    fresh.write_text(seconds)
    fresh.replace(ahead)


def compiled_shim(folder: Path) -> Path:
    """Compile the library that shifts the clock of a JVM; the test is skipped where there is no C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("to set the clock of one process takes a C compiler")
    library = folder / "shifted_clock.so"
    source = Path(__file__).resolve().parents[2] / "support" / "publisher" / "shifted_clock.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


def logged(publisher: PublisherProcess, event: str) -> list[dict[str, Any]]:
    lines = (json.loads(line) for line in publisher.log().splitlines() if line.startswith("{"))
    return [line for line in lines if line.get("event") == event]


def has_row(found: list[Sent], number: int) -> bool:
    return int_value(number) in {row.key for row in rows(found)}


def has_clock(watermarks: Callable[[], list[Watermark]], jump: float) -> bool:
    """A watermark by a clock that is so far ahead."""
    return any(abs(watermark.clock / 1e6 - time.time() - jump) < DAY / 2 for watermark in watermarks())


def status(publisher: PublisherProcess) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(publisher.get("/status")[1])
    return value
