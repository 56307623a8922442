"""The marks of tables that need a snapshot: each host has its own, and all write the one of the tables topic."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.messages.tables import mark_from_json, request_key, request_to_json
from cdc_common.messages.topics import tables_topic
from publisher.progress import Progress
from publisher.tables.node_schema import NodeSchema
from publisher.topics.raw_topics import RawTopics, RegistryIds
from publisher.topics.server_calls import ServerCalls
from publisher.topics.table_follower import TableFollower
from publisher.topics.waiting import WaitingTables
from tests.support.publisher.finish import finish
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from publisher.inflight import PendingMessages


class Kafka:
    """publisher.kafka.topic_admin.TopicAdmin and publisher.kafka.sender.Sender, of all hosts."""

    def __init__(self) -> None:
        self.tables: list[tuple[bytes, bytes]] = []

    def check_reachable(self) -> None: ...

    def ensure_tables_topic(self, _topic: str) -> None: ...

    def ensure_watermarks_topic(self, _topic: str) -> None: ...

    def ensure_raw_topic(self, _topic: str) -> tuple[int, bool]:
        return 1, False

    def read_partition_counts(self) -> dict[str, int]:
        return {}

    def find_usable(self, topics: set[str]) -> set[str]:
        return topics

    def take_refusals(self, _topic: str) -> list[object]:
        return []

    def read_latest_values(self, _topic: str, first: int = 0) -> tuple[dict[bytes, bytes], int]:
        return dict(self.tables[first:]), len(self.tables)

    def send(self, topic: str, key: bytes, value: bytes, pending: PendingMessages) -> bool:
        assert topic == tables_topic("cdc")
        self.tables.append((key, value))
        pending.acknowledge()
        return True

    def poll(self, _seconds: float) -> None: ...

    def mark(self, table_id: bytes) -> int:
        """Return the mark as the materializer sees it."""
        value = dict(self.tables).get(table_id)
        return 0 if value is None else mark_from_json(value)


class Host:
    """A publisher."""

    def __init__(self, kafka: Kafka, rows: SchemaRows, folder: Path) -> None:
        folder.mkdir()
        self._kafka, self._rows, self._folder = kafka, rows, folder
        self.restart()

    def restart(self) -> None:
        self.schema = NodeSchema(self._folder / "schema.json", self._rows.run_query, ("cdc_filler", "filler"))
        self.schema.load()
        ids = RegistryIds(self._folder / "registry.json", "http://registry", cast("Any", None))
        ids._ids["cdc.raw.ks.a-value"] = 1
        self.raw_topics = RawTopics("cdc", "test", cast("Any", self._kafka), cast("Any", self._kafka), ids)
        waiting = WaitingTables(self._folder / "waiting.json")
        calls = ServerCalls(Progress(0.0))
        self.tables = TableFollower(self.schema, waiting, self.raw_topics, cast("Any", None), calls)
        finish(self.tables.start())

    def mark(self, table_id: bytes, since: int) -> None:
        """Rows from before a time are lost on this node."""
        self.schema.marks.require(self.schema.tables[table_id], since)
        self.schema._set_tables(self.schema.tables)
        self.schema._save()
        finish(self.tables.read_schema())

    def end_snapshot(self, table_id: bytes, begun: int) -> None:
        """End the snapshot as Publisher does when it has seen that all hosts have ended."""
        self.schema.note_snapshot(table_id, begun)
        finish(self.tables.read_schema())
        finish(self.tables.clear_mark(table_id, begun))

    def own_mark(self, table_id: bytes) -> int:
        return self.schema.published[table_id].needs_snapshot_since


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def rows() -> SchemaRows:
    return SchemaRows()


def test_the_end_of_a_snapshot_leaves_the_newer_mark_of_another_host(
    kafka: Kafka, rows: SchemaRows, tmp_path: Path
) -> None:
    table = rows.create("ks", "a", cdc=True)
    one, two = (Host(kafka, rows, tmp_path / name) for name in ("one", "two"))
    one.mark(table, 5)
    two.mark(table, 8)
    one.end_snapshot(table, 7)
    assert (one.own_mark(table), two.own_mark(table), kafka.mark(table)) == (0, 8, 8)
    one.end_snapshot(table, 9)
    two.end_snapshot(table, 9)
    assert kafka.mark(table) == 0


def test_the_later_one_of_two_marks_stands(kafka: Kafka, rows: SchemaRows, tmp_path: Path) -> None:
    table = rows.create("ks", "a", cdc=True)
    one, two = (Host(kafka, rows, tmp_path / name) for name in ("one", "two"))
    one.mark(table, 8)
    two.restart()
    two.mark(table, 5)
    assert kafka.mark(table) == 8


def test_a_mark_that_was_cleared_at_the_same_moment_is_sent_again(
    kafka: Kafka, rows: SchemaRows, tmp_path: Path
) -> None:
    """The other host had read the topic before it came."""
    table = rows.create("ks", "a", cdc=True)
    one, two = (Host(kafka, rows, tmp_path / name) for name in ("one", "two"))
    one.mark(table, 5)
    one.schema.note_snapshot(table, 7)
    finish(one.tables.read_schema())
    two.mark(table, 8)
    finish(one.tables._clear_mark(table, 7))
    assert kafka.mark(table) == 0
    finish(two.tables.take_requests())
    assert kafka.mark(table) == 8


def test_a_mark_of_a_host_that_is_gone_is_cleared(kafka: Kafka, rows: SchemaRows, tmp_path: Path) -> None:
    table = rows.create("ks", "a", cdc=True)
    one, two = (Host(kafka, rows, tmp_path / name) for name in ("one", "two"))
    one.end_snapshot(table, 3)
    two.mark(table, 5)
    one.end_snapshot(table, 7)
    assert kafka.mark(table) == 0


def test_a_request_that_is_withdrawn_leaves_the_mark_of_another_host(
    kafka: Kafka, rows: SchemaRows, tmp_path: Path
) -> None:
    table = rows.create("ks", "a", cdc=True)
    one, two = (Host(kafka, rows, tmp_path / name) for name in ("one", "two"))
    for lost_at in (5, 0):
        kafka.tables.append((request_key(table), request_to_json(lost_at)))
        finish(one.tables.take_requests())
        if lost_at:
            finish(two.tables.take_requests())
            two.mark(table, 6)
    assert (one.own_mark(table), kafka.mark(table)) == (0, 6)


def test_a_process_beside_the_publisher_sends_no_mark(kafka: Kafka, rows: SchemaRows, tmp_path: Path) -> None:
    """It would set its own time, which is later than when the snapshot that it sends was asked for."""
    table = rows.create("ks", "a", cdc=False)
    host = Host(kafka, rows, tmp_path / "one")
    rows.alter("ks", "a", cdc=True)
    host.schema.refresh()
    host.raw_topics.open(host.schema.published[table])
    assert kafka.mark(table) == 0
    finish(host.tables.read_schema())
    assert kafka.mark(table) == host.own_mark(table) > 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["mark", "end", "follow", "restart", "read"]), st.integers(0, 2)), max_size=25
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS)
def test_no_order_of_steps_loses_a_mark_or_keeps_one(steps: list[tuple[str, int]]) -> None:
    """A snapshot ends on one host after the other; its beginning is that of the last `read`."""
    with tempfile.TemporaryDirectory() as name:
        kafka, rows = Kafka(), SchemaRows()
        table = rows.create("ks", "a", cdc=True)
        hosts = [Host(kafka, rows, Path(name) / str(number)) for number in range(3)]
        begun = 0
        for time, (step, number) in enumerate(steps, 1):
            host = hosts[number]
            if step == "mark":
                host.mark(table, time)
                assert kafka.mark(table) >= time
            elif step == "end" and begun:
                host.end_snapshot(table, begun)
            elif step == "follow":
                finish(host.tables.take_requests())
            elif step == "restart":
                host.restart()
            elif step == "read":
                begun = time
        for host in hosts:
            finish(host.tables.take_requests())
        assert kafka.mark(table) >= max(host.own_mark(table) for host in hosts)
        for host in hosts:
            host.end_snapshot(table, len(steps) + 1)
        assert kafka.mark(table) == 0
