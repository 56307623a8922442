"""Cassandra 3.11 drops a column of a non-frozen user type while the log holds its cells, which no schema shows then."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.row import Cell, ComplexColumnData
from cdc_common.errors.codes import CdcError
from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside
from tests.support.publisher.sent import int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from tests.support.publisher.sent import Sent

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

ROWS = 3000
SEGMENT_MIB = 1
SECONDS = 180.0
COLUMNS = {"a", "v"}
MOST_QUARANTINED = ROWS // 10


@pytest.fixture
def node(own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    return own_cluster(version="3.11", options=CassandraOptions(commitlog_segment_mib=SEGMENT_MIB)).nodes[0]


@pytest.fixture
def publisher(node: CassandraNode, kafka_parts: dict[str, object], tmp_path: Path) -> PublisherProcess:
    settings = settings_beside(node.cluster, tmp_path / "state") | kafka_parts
    settings |= {"node.commitlog_directory": node.commitlog, "node.commitlog_segment_mib": SEGMENT_MIB}
    return PublisherProcess(settings, tmp_path)


def make_table(client: CqlClient) -> None:
    client.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.execute("CREATE TYPE ks.addr (x int, y text)")
    client.execute("CREATE TABLE ks.t (k int PRIMARY KEY, a text, u addr, v map<int, text>) WITH cdc = true")


def write(client: CqlClient, rng: random.Random, key: int) -> dict[bytes, bytes]:
    """The map that the row has."""
    elements = {key: rng.choice(["tea", "cup", "x", "milk"]) for key in range(rng.randint(1, 3))}
    text = "".join(rng.choice("abcdefgh ") for _ in range(rng.randint(0, 8)))
    value = f"{{x: {rng.randint(0, 9)}, y: '{text}'}}"
    literal = ", ".join(f"{key}: '{element}'" for key, element in elements.items())
    client.execute(f"INSERT INTO ks.t (k, a, u, v) VALUES ({key}, 'hello', {value}, {{{literal}}})")
    return {int_value(key): element.encode() for key, element in elements.items()}


def hand_over(node: CassandraNode, client: CqlClient) -> None:
    """3.11 moves a segment to cdc_raw when it is full and flushed."""
    client.execute("CREATE TABLE IF NOT EXISTS ks.padding (k int PRIMARY KEY, v blob)")
    for _ in range(2 * SEGMENT_MIB * 1024 // 256 + 2):
        client.execute(f"INSERT INTO ks.padding (k, v) VALUES (1, 0x{'00' * (256 << 10)})")
    node.nodetool("flush")


def contents(sent: list[Sent]) -> dict[bytes, dict[bytes, bytes]]:
    """Each row's map; its other columns are checked."""
    found = {}
    for sent_row in rows(sent):
        assert sent_row.update is not None
        [row] = sent_row.update.rows
        assert set(row.columns) - {"u"} == COLUMNS
        text, elements = row.columns["a"], row.columns["v"]
        assert isinstance(text, Cell)
        assert text.value == b"hello"
        assert isinstance(elements, ComplexColumnData)
        found[sent_row.update.partition_key] = {cell.path or b"": cell.value for cell in elements.cells}
    return found


@pytest.mark.parametrize("start", ["before", "before, and stopped", "after"])
def test_what_was_written_before_the_drop_is_read_rightly(
    node: CassandraNode, publisher: PublisherProcess, sent: Callable[..., list[Sent]], start: str
) -> None:
    rng = random.Random(start)
    with cql.connect([node.address], node.port) as client:
        make_table(client)
        try:
            if start != "after":
                publisher.start()
            if start == "before, and stopped":
                assert publisher.stop() == 0
            written = {int_value(key): write(client, rng, key) for key in range(ROWS)}
            client.execute("ALTER TABLE ks.t DROP u")
            for refused in ("addr", "frozen<addr>"):
                with pytest.raises(CdcError, match="incompatible with previous type"):
                    client.execute(f"ALTER TABLE ks.t ADD u {refused}")
            hand_over(node, client)
            if start != "before":
                publisher.start()
            found = sent("ks", "t", lambda found: len(contents(found)) >= ROWS, SECONDS)
            assert contents(found) == written
            assert "CDC-048" not in publisher.log()
            eventually(lambda: '"quarantined": 0' in publisher.command("status", "--json")[1])
        finally:
            publisher.kill()


@pytest.mark.parametrize(("added", "value"), [("frozen<tuple<int, text>>", "({}, 'y')"), ("blob", "0x0c0200{:08x}")])
def test_a_column_that_was_added_again_is_never_misread(
    node: CassandraNode, publisher: PublisherProcess, sent: Callable[..., list[Sent]], added: str, value: str
) -> None:
    """Both forms are in one log. What can be read in both ways is quarantined: few of them."""
    rng = random.Random(added)
    with cql.connect([node.address], node.port) as client:
        make_table(client)
        try:
            publisher.start()
            written = {int_value(key): write(client, rng, key) for key in range(ROWS)}
            client.execute("ALTER TABLE ks.t DROP u")
            client.execute(f"ALTER TABLE ks.t ADD u {added}")
            for key in range(ROWS, 2 * ROWS):
                literal = value.format(key)
                client.execute(f"INSERT INTO ks.t (k, a, u, v) VALUES ({key}, 'hello', {literal}, {{1: 'tea'}})")
                written[int_value(key)] = {int_value(1): b"tea"}
            hand_over(node, client)
            messages = sent("ks", "t", lambda found: len(rows(found)) >= 2 * ROWS, SECONDS)
            quarantined = {message.key for message in messages if message.message.kind == "gap"}
            found = contents([message for message in messages if message.message.kind != "gap"])
            assert found == {key: elements for key, elements in written.items() if key not in quarantined}
            assert len(quarantined) <= MOST_QUARANTINED
        finally:
            publisher.kill()
