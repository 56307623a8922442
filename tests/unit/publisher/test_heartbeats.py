"""Which raw partitions need a heartbeat."""

from __future__ import annotations

from uuid import UUID

from cassandra_storage.cql_types import parse_type
from cassandra_storage.schema import ColumnKind, ColumnMetadata, TableMetadata
from publisher.heartbeats import BUSY_PERIODS, HeartbeatSchedule
from publisher.raw_topics import RawTopic
from publisher.schema import PublishedTable

KEY = ColumnMetadata("id", parse_type("int", "ks", {}), ColumnKind.PARTITION_KEY, 0)
TABLE = TableMetadata("ks", "t", UUID(int=1), (KEY,))
RAW_TOPIC = RawTopic(PublishedTable(TABLE, TABLE.id.bytes, bytes(16)), "p.raw.ks.t", 2, 7)


def due(heartbeats: HeartbeatSchedule, last_sent: dict[tuple[str, int], float], now: float) -> list[int]:
    return [raw_partition for _, raw_partition in heartbeats.due_partitions([RAW_TOPIC], last_sent, now)]


def test_a_raw_partition_is_due_once_it_has_been_idle_and_then_again() -> None:
    heartbeats = HeartbeatSchedule(10)
    assert due(heartbeats, {}, 100) == []
    assert due(heartbeats, {}, 109) == []
    assert due(heartbeats, {(RAW_TOPIC.name, 0): 105}, 110) == [1]
    assert due(heartbeats, {(RAW_TOPIC.name, 0): 105}, 115) == [0]
    assert due(heartbeats, {(RAW_TOPIC.name, 0): 105}, 119) == []
    assert due(heartbeats, {(RAW_TOPIC.name, 0): 105}, 125) == [0, 1]


def test_a_busy_raw_partition_is_due_less_often() -> None:
    heartbeats = HeartbeatSchedule(10)
    times = [now for now in range(100, 300) if 0 in due(heartbeats, {(RAW_TOPIC.name, 0): now}, now)]
    assert times == [100 + 10 * BUSY_PERIODS * count for count in (1, 2, 3)]


def test_what_finds_no_room_is_due_at_the_next_call() -> None:
    heartbeats = HeartbeatSchedule(10)
    assert due(heartbeats, {}, 100) == []
    for _, raw_partition in heartbeats.due_partitions([RAW_TOPIC], {}, 110):
        if raw_partition == 1:
            break  # the queue has taken the first one only
    assert due(heartbeats, {}, 111) == [1]
    assert due(heartbeats, {}, 120) == [0]


def test_zero_seconds_means_no_heartbeats() -> None:
    heartbeats = HeartbeatSchedule(0)
    assert due(heartbeats, {}, 0) == []
    assert due(heartbeats, {}, 1000) == []
