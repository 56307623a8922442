from __future__ import annotations

import pytest

from cdc_common.messages import topics
from cdc_common.messages.errors import MessageError
from cdc_common.messages.topics import TopicCollision, versions


def test_names() -> None:
    assert topics.raw_topic("cdc", "shop", "orders") == "cdc.raw.shop.orders"
    assert topics.change_topic("cdc", "shop", "orders") == "cdc.shop.orders"
    assert topics.tables_topic("cdc") == "cdc.tables"


@pytest.mark.parametrize(
    ("data", "expected"),
    [  # org.apache.kafka.common.utils.UtilsTest.testMurmur2
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(data: bytes, expected: int) -> None:
    assert topics.murmur2(data) == expected & 0xFFFFFFFF


def test_partition_is_of_the_positive_hash() -> None:
    assert topics.partition_for(b"foobar", 7) == (-790332482 & 0x7FFFFFFF) % 7


def test_tables_without_collision() -> None:
    assert topics.collisions("cdc", [("shop", "orders"), ("shop", "orders"), ("a_b", "c"), ("a", "c")]) == []


def test_underscore_collides_with_dot() -> None:
    assert topics.collisions("cdc", [("a_b", "c"), ("a", "b_c")]) == [
        TopicCollision("a_b.c", "cdc.raw.a_b.c", "a.b_c", "cdc.raw.a.b_c"),
        TopicCollision("a_b.c", "cdc.a_b.c", "a.b_c", "cdc.a.b_c"),
        TopicCollision("a_b.c", "cdc.dead.a_b.c", "a.b_c", "cdc.dead.a.b_c"),
    ]


def test_a_keyspace_called_raw_collides_with_a_raw_topic() -> None:
    (found,) = topics.collisions("cdc", [("a", "b"), ("raw", "a_b")])
    assert found == TopicCollision("raw.a_b", "cdc.raw.a_b", "a.b", "cdc.raw.a.b")


def test_length() -> None:
    assert topics.check_length("x" * 249)
    with pytest.raises(MessageError, match="249"):
        topics.check_length("x" * 250)


def test_the_next_version_of_a_topic_follows_the_existing_ones() -> None:
    existing = {"cdc.shop.orders", "cdc.shop.orders-v2"}
    assert next(topic for topic in versions("cdc.shop.orders") if topic not in existing) == "cdc.shop.orders-v3"
