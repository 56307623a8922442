"""A publisher says how far it has published, and when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.cql_types import parse_type
from cdc_common.messages import watermarks
from cdc_common.messages.watermarks import TableWatermark
from publisher.tables.published_table import PublishedTable
from publisher.tables.row_ends import RowEnds, RowsEnd
from publisher.upkeep.heartbeats import WatermarkSender

if TYPE_CHECKING:
    from publisher.inflight import PendingMessages

HOST = UUID(int=7)
KEY = ColumnMetadata("id", parse_type("int", "ks", {}), ColumnKind.PARTITION_KEY, 0)
CLOCK = 1_700_000_000_000_000


def table(number: int) -> PublishedTable:
    metadata = TableMetadata("ks", f"t{number}", UUID(int=number), (KEY,))
    return PublishedTable(metadata, metadata.id.bytes, bytes([number]) * 16)


class FakeKafka:
    """Sender and raw topics. has_room: whether the queue takes a message. unopened: tables without a raw topic."""

    watermarks_topic = "p.watermarks"

    def __init__(self) -> None:
        self.sent: list[tuple[str, bytes, bytes]] = []
        self.has_room = True
        self.unopened: set[bytes] = set()

    def find_open(self, published: PublishedTable) -> object | None:
        return None if published.id in self.unopened else published

    def send(self, topic: str, key: bytes, value: bytes, _pending: PendingMessages) -> bool:
        if self.has_room:
            self.sent.append((topic, key, value))
        return self.has_room


def sender(
    kafka: FakeKafka,
    seconds: float = 10.0,
    tables: int = 2,
    ends: RowEnds | None = None,
    held_back: frozenset[bytes] = frozenset(),
) -> WatermarkSender:
    schema = SimpleNamespace(
        current_tables=lambda: [table(number) for number in range(1, tables + 1)],
        row_ends=ends or RowEnds(None),  # type: ignore[arg-type]
    )
    positions = SimpleNamespace(clock=CLOCK, published_up_to=CommitLogPosition(3, 400))
    waiting = SimpleNamespace(held_back=held_back)
    node = SimpleNamespace(host_id=HOST.bytes, schema=schema, positions=positions, waiting=waiting)
    return WatermarkSender(seconds, cast("Any", node), cast("Any", SimpleNamespace(raw_topics=kafka, sender=kafka)))


def test_a_watermark_is_sent_at_once_and_then_once_a_period() -> None:
    kafka = FakeKafka()
    of_node = sender(kafka)
    times = []
    for now in range(100, 141):
        before = len(kafka.sent)
        of_node.send_if_due(now)
        times += [now] * (len(kafka.sent) - before)
    assert times == [100, 110, 120, 130, 140]


def test_it_says_what_kafka_has_acknowledged_of_each_open_table() -> None:
    kafka = FakeKafka()
    kafka.unopened = {table(2).id}
    sender(kafka, tables=3).send_if_due(1)
    [(topic, key, value)] = kafka.sent
    said = watermarks.decode(value)
    assert (topic, key) == ("p.watermarks", HOST.bytes + b"\x00\x00")
    assert (said.host_id, said.clock, said.segment, said.position) == (HOST.bytes, CLOCK, 3, 400)
    assert said.tables == {table(number).id: TableWatermark(bytes([number]) * 16, CLOCK) for number in (1, 3)}


def test_nothing_is_said_of_a_table_whose_mutations_are_held() -> None:
    kafka = FakeKafka()
    sender(kafka, held_back=frozenset({table(1).id})).send_if_due(1)
    assert watermarks.decode(kafka.sent[0][2]).tables.keys() == {table(2).id}


def test_a_table_whose_rows_end_has_the_clock_from_before() -> None:
    ends = RowEnds(None)  # type: ignore[arg-type]
    ends.published = {table(1).id, table(2).id}
    ends._pending[table(2).id] = RowsEnd("truncate", CommitLogPosition(3, 300), CLOCK // 1000 - 5000, CLOCK - 4_000_000)
    kafka = FakeKafka()
    sender(kafka, ends=ends).send_if_due(1)
    said = watermarks.decode(kafka.sent[0][2])
    assert [said.tables[table(number).id].clock for number in (1, 2)] == [CLOCK, CLOCK - 5_000_000]


def test_what_finds_no_room_is_due_at_the_next_call() -> None:
    kafka = FakeKafka()
    of_node = sender(kafka)
    kafka.has_room = False
    of_node.send_if_due(100)
    assert not kafka.sent
    kafka.has_room = True
    of_node.send_if_due(101)
    assert len(kafka.sent) == 1


def test_zero_seconds_means_no_watermarks() -> None:
    kafka = FakeKafka()
    of_node = sender(kafka, seconds=0)
    of_node.send_if_due(0)
    of_node.send_if_due(1000)
    assert not kafka.sent
