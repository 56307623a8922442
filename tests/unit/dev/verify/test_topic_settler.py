"""When a raw topic counts as settled: by the watermarks of its table, and by the committed positions."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from cdc_common.messages.watermarks import TableWatermark, Watermark
from dev.verify.model.topic_settler import Target, unnamed
from stream_runtime.exactly_once.position import Position, encode
from stream_runtime.records import Rest

HOSTS = (b"1" * 16, b"2" * 16)
TABLES = {"cdc.raw.k.a": b"a" * 16, "cdc.raw.k.b": b"b" * 16}
REST = Rest(None, None, frozenset({1}), 7)


def watermark(host: bytes, clocks: dict[str, int]) -> Watermark:
    return Watermark(host, 9, 1, 1, {TABLES[topic]: TableWatermark(b"d" * 16, at) for topic, at in clocks.items()})


def test_a_table_is_named_once_each_host_names_it_with_a_later_clock() -> None:
    both = [watermark(host, {"cdc.raw.k.a": 6, "cdc.raw.k.b": 5}) for host in HOSTS]
    assert unnamed(TABLES, both, 5) == {"cdc.raw.k.b"}
    assert unnamed(TABLES, both, 4) == set()
    assert unnamed(TABLES, both[:1], 4) == set()
    assert unnamed(TABLES, [*both[:1], watermark(HOSTS[1], {"cdc.raw.k.a": 6})], 4) == {"cdc.raw.k.b"}
    assert unnamed(TABLES, [], 4) == set(TABLES)


def test_a_host_may_name_its_tables_in_parts() -> None:
    parts = [watermark(HOSTS[0], {topic: 6}) for topic in TABLES]
    assert unnamed(TABLES, parts, 5) == set()


def committed(offset: int, rest: Rest | None) -> TopicPartition:
    if offset < 0:
        return TopicPartition("cdc.raw.k.a", 0, offset)
    return TopicPartition("cdc.raw.k.a", 0, offset, encode(Position(offset, "3-x", 1, rest=rest)))


@pytest.mark.parametrize(
    ("offset", "rest", "is_reached"),
    [
        (8, REST, True),
        (7, REST, False),
        (-1001, None, False),
        (8, None, False),  # rows are cut, or follow a schema
        (8, REST._replace(due_ms=101), True),
        (8, REST._replace(due_ms=100), False),  # something has expired
        (8, REST._replace(purge_ms=0), False),  # a TRUNCATE waits for publishers
        (8, REST._replace(purge_ms=5), True),
    ],
)
def test_a_raw_partition_is_settled_at_its_end_without_work(
    offset: int, rest: Rest | None, *, is_reached: bool
) -> None:
    assert Target(8, 100).is_reached(committed(offset, rest)) is is_reached


def test_an_empty_raw_partition_is_settled() -> None:
    assert Target(0, 100).is_reached(committed(-1001, None))
