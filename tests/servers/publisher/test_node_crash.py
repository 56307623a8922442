"""kill -9 of a real node in mid-write: what the publisher's tails read before, during and after is what the node itself
has after its restart, row for row.

`commitlog_sync: periodic` acknowledges before it syncs, so a crash may lose acknowledged writes for the node itself;
what must hold then is that SELECT after the restart and the tails agree both ways. With `batch` every acknowledged
write must be in both as well. `flushed`: killed between a flush and the next sync, when SSTables hold more than the
index tells of. More versions and forms of the log are tried by `make exhaustive`.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import UUID

import pytest
from cassandra.cluster import NoHostAvailable
from cassandra.concurrent import execute_concurrent_with_args

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.files.keystore import read_keys
from cassandra_storage.formats.rows.mutation import read_mutation
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.encryption import PASSWORD, make_keystore
from publisher.inflight import PendingPosition
from publisher.log.position import Positions
from publisher.log.tail import SegmentTails
from tests.support.publisher.sent import cell
from tests.support.vectors import make_vectors
from tests.support.vectors.load import tables_of

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraNode

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

log = logging.getLogger(__name__)

KEYSPACE = "crash"
WRITE_SECONDS = 4.0
READ_SECONDS = 90.0


class Case(NamedTuple):
    version: str
    compression: str | None
    sync: str
    is_encrypted: bool = False
    is_flushed: bool = False

    def __str__(self) -> str:
        form = "encrypted" if self.is_encrypted else self.compression or "plain"
        return "-".join((self.version, form, self.sync, *(["flushed"] if self.is_flushed else [])))


CASES = [Case("5.0", "LZ4", "periodic")]
MORE_CASES = [
    Case("5.0", "LZ4", "batch"),
    Case("5.0", None, "periodic"),
    Case("5.0-NONE", None, "periodic", is_encrypted=True),
    Case("4.1", "Zstd", "batch"),
    Case("4.0", "Snappy", "periodic"),
    Case("3.11", "Deflate", "batch"),
    Case("3.11", None, "periodic"),
    Case("5.0", None, "periodic", is_flushed=True),
    Case("4.0", None, "periodic", is_flushed=True),
]


class Follower:
    """Reads cdc_raw in a thread as a publisher does, from before the crash until after it; all is acknowledged at once.
    Finished segments are deleted.
    """

    def __init__(self, node: CassandraNode, positions: Positions, codecs: SegmentCodecs) -> None:
        self._node = node
        self._positions = positions
        self._tails = SegmentTails(node.cdc_raw, positions, codecs)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._error: BaseException | None = None
        self.mutations: list[tuple[int, int, int, bytes]] = []  # segment, position, messaging version, mutation

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.02):
                self._poll()
        except BaseException as error:  # noqa: BLE001  it is raised where the test waits
            self._error = error

    def _poll(self) -> None:
        for tail in self._tails.poll():
            for entry in tail.entries():
                found = (tail.file.id, entry.end_position, tail.messaging_version, entry.mutation)
                self.mutations.append(found)
            self._positions.move([PendingPosition(tail.file.id, tail.position, is_end=tail.is_at_end)])
            if tail.is_at_end:
                tail.file.delete()

    def wait_for(self, text: bytes) -> None:
        """Wait until a mutation that contains `text` has been read."""
        deadline = time.monotonic() + READ_SECONDS
        while not any(text in found[-1] for found in list(self.mutations)):
            assert self._thread.is_alive(), self._error
            assert time.monotonic() < deadline, sorted(path.name for path in self._node.cdc_raw.iterdir())
            time.sleep(0.1)


@pytest.mark.parametrize(
    "case", [*CASES, *(pytest.param(case, marks=pytest.mark.exhaustive) for case in MORE_CASES)], ids=str
)
def test_kill_9_of_a_node(case: Case, tmp_path: Path) -> None:
    cluster = CassandraCluster(case.version)
    codecs = SegmentCodecs()
    keystore = None
    if case.is_encrypted:
        keystore = make_keystore(tmp_path / "keystore", cluster.java)
        codecs = SegmentCodecs(read_keys(keystore, PASSWORD))
    cluster.options = options(case, keystore)
    with cluster:
        (node,) = cluster.nodes
        positions = Positions.load(tmp_path / "position.json", UUID(int=1))
        with Follower(node, positions, codecs) as follower:
            acknowledged = write_until_killed(node, is_flushed=case.is_flushed)
            node.start()
            shown, schema = read_back(node, follower)
            deadline = time.monotonic() + READ_SECONDS
            while (read := rows_read(follower, schema)) != shown and time.monotonic() < deadline:
                time.sleep(1.0)
    lost = sorted(acknowledged - shown.keys())
    counts = (len(acknowledged), len(shown), len(read), len(lost))
    log.info("%s: %d acknowledged, %d shown, %d read, %d lost by the node itself", case, *counts)
    assert len(acknowledged) > 100
    assert read == shown
    if case.sync == "batch":
        assert not lost


def options(case: Case, keystore: Path | None) -> CassandraOptions:
    yaml: dict[str, object] = {}
    if case.sync == "batch":
        yaml["commitlog_sync"] = "batch"
        if case.version == "3.11":
            yaml["commitlog_sync_batch_window_in_ms"] = 2
    return CassandraOptions(
        commitlog_segment_mib=2,
        commitlog_sync_period_ms=0 if case.sync == "batch" else 10_000 if case.is_flushed else 1000,
        commitlog_compression=case.compression,
        keystore=keystore,
        yaml=yaml,
    )


def write_until_killed(node: CassandraNode, *, is_flushed: bool) -> set[int]:
    """The ids that were acknowledged."""
    driver, session = make_vectors.connect(node)
    session.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    session.execute(f"CREATE TABLE {KEYSPACE}.t (id int PRIMARY KEY, v text) WITH cdc = true")
    killer = threading.Timer(WRITE_SECONDS, node.kill)
    acknowledged: set[int] = set()
    try:
        if is_flushed:
            write(session, acknowledged, 1000)
            node.nodetool("flush")
            node.kill()
        else:
            killer.start()
            write(session, acknowledged)
            killer.join()
    finally:
        driver.shutdown()
    return acknowledged


def write(session: Session, acknowledged: set[int], count: int = 10**9) -> None:
    """Row after row, 32 at once, until the node is gone."""
    insert = session.prepare(f"INSERT INTO {KEYSPACE}.t (id, v) VALUES (?, ?)")
    first = 0
    while first < count:
        batch = range(first, first + 200)
        try:
            done = execute_concurrent_with_args(
                session, insert, [(number, value(number)) for number in batch], 32, raise_on_first_error=False
            )
        except NoHostAvailable:
            return
        acknowledged.update(number for number, result in zip(batch, done, strict=True) if result.success)
        if not all(result.success for result in done):
            return
        first = batch.stop


def value(number: int) -> str:
    return f"value of {number} " + "x" * (number % 400)


def read_back(node: CassandraNode, follower: Follower) -> tuple[dict[int, str], dict[str, list[dict[str, Any]]]]:
    """({id: v} as the node answers after its restart, its schema); all of it has been read then."""
    driver, session = make_vectors.connect(node)
    try:
        shown = {row["id"]: row["v"] for row in session.execute(f"SELECT id, v FROM {KEYSPACE}.t")}
        insert = session.prepare(f"INSERT INTO {KEYSPACE}.t (id, v) VALUES (?, ?)")
        session.execute(insert, (-1, "the end"))
        if node.cluster.version.line.startswith("3"):
            for number in range(200):  # 3.11 hands a segment over when it is full and flushed
                session.execute(insert, (-2 - number, "y" * 20_000))
            node.nodetool("flush")
        follower.wait_for(b"the end")
        return shown, make_vectors.schema_rows(session)
    finally:
        driver.shutdown()


def rows_read(follower: Follower, schema: dict[str, list[dict[str, Any]]]) -> dict[int, str]:
    """{id: v} of all that was read; no place of the log twice."""
    places = [found[:2] for found in follower.mutations]
    assert len(set(places)) == len(places)
    tables = tables_of({**schema, "dropped_columns": []})
    rows: dict[int, str] = {}
    for *_, version, mutation in follower.mutations:
        for update in read_mutation(mutation, version, tables):
            if update.table.keyspace == KEYSPACE:
                number = int.from_bytes(update.partition_key, "big", signed=True)
                rows[number] = cell(update.rows[0], "v").value.decode()
    return {number: text for number, text in rows.items() if number >= 0}
