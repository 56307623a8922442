"""Names of topics, and the Kafka partition of a key, as Kafka's Java clients compute it."""

from __future__ import annotations

import re
from itertools import count
from struct import unpack_from
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_TOPIC_LENGTH = 249  # org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH
_VERSION = re.compile(r"-v([0-9]+)$")


class Topic(NamedTuple):
    """A topic that changes are sent to."""

    # The name of the topic.
    name: str
    # The number of its partitions.
    partitions: int


def raw_topic(prefix: str, keyspace: str, table: str) -> str:
    return f"{prefix}.raw.{keyspace}.{table}"


def change_topic(prefix: str, keyspace: str, table: str, version: int = 1) -> str:
    """A topic always has the same key schema. Another key schema needs another version of the topic, named from 2 on.

    Kafka does not distinguish '.' and '_', and Cassandra's names have no '-', so no other table's topic collides.
    """
    return versioned(f"{prefix}.{keyspace}.{table}", version)


def versioned(topic: str, version: int) -> str:
    """The name of a version of a topic: the first has the plain name."""
    return f"{topic}-v{version}" if version > 1 else topic


def check_unversioned(name: str) -> str:
    """The name, or ValueError if it ends as a later version of another name does."""
    found = _VERSION.search(name)
    if found is not None and int(found[1]) > 1:
        raise ValueError(f"{name!r} ends as a later topic of {name[: found.start()]!r} does: choose another name")
    return name


def versions(topic: str) -> Iterator[str]:
    """The names of a topic's versions, without an end. The next version is the first that no registry or broker has."""
    return (versioned(topic, version) for version in count(1))


def tables_topic(prefix: str) -> str:
    """The compacted topic of table schemas."""
    return f"{prefix}.tables"


def watermarks_topic(prefix: str) -> str:
    """The compacted topic that says how far each publisher has published (cdc_common.messages.watermarks)."""
    return f"{prefix}.watermarks"


class TopicCollision(NamedTuple):
    """Two topics whose names Kafka does not distinguish."""

    # The owner of the first: `keyspace.table`, `schemas` or `watermarks`.
    owner: str
    # The name of the first.
    topic: str
    # The owner of the second.
    other_owner: str
    # The name of the second.
    other_topic: str


def collisions(prefix: str, tables: Iterable[tuple[str, str]]) -> list[TopicCollision]:
    """The pairs of topics of the (keyspace, table) given that Kafka cannot tell apart.

    Kafka maps both '.' and '_' to '_' in its metrics and refuses the second of two such names, so that `a_b.c` and
    `a.b_c` collide; so do the raw topic of `a.b` and the change topic of `raw.a_b`.
    """
    seen: dict[str, tuple[str, str]] = {}
    found: list[TopicCollision] = []
    for owner, topic in _topics(prefix, tables):
        other_owner, other_topic = seen.setdefault(topic.replace(".", "_"), (owner, topic))
        if (other_owner, other_topic) != (owner, topic):
            found.append(TopicCollision(owner, topic, other_owner, other_topic))
    return found


def dead_letter_topic(prefix: str, keyspace: str, table: str) -> str:
    """The topic of dead-lettered raw messages."""
    return f"{prefix}.dead.{keyspace}.{table}"


def table_of(raw_topic: str) -> tuple[str, str]:
    """The keyspace and the table of a raw topic's name."""
    keyspace, table = raw_topic.split(".")[-2:]
    return keyspace, table


def check_length(topic: str) -> str:
    """The topic's name, or MessageError if it is too long for Kafka."""
    if len(topic) > MAX_TOPIC_LENGTH:
        raise MessageError(f"topic name {topic} has {len(topic)} characters; Kafka allows {MAX_TOPIC_LENGTH}")
    return topic


def _topics(prefix: str, tables: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    yield "schemas", tables_topic(prefix)
    yield "watermarks", watermarks_topic(prefix)
    for keyspace, table in sorted(set(tables)):
        owner = f"{keyspace}.{table}"
        yield owner, raw_topic(prefix, keyspace, table)
        yield owner, change_topic(prefix, keyspace, table)
        yield owner, dead_letter_topic(prefix, keyspace, table)


def matches(topic: str, patterns: list[str]) -> bool:
    """Whether one of the patterns is the topic's name, or matches the whole of it."""
    return any(topic == pattern or re.fullmatch(pattern, topic) for pattern in patterns)


def partition_for(key: bytes, count: int) -> int:
    """The Kafka partition of a serialized partition key in a topic with `count` partitions (BuiltInPartitioner).

    librdkafka's `partitioner=murmur2` gives the same.
    """
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """org.apache.kafka.common.utils.Utils.murmur2 as an unsigned 32-bit integer."""
    length = len(data)
    words = length >> 2
    hashed = 0x9747B28C ^ length
    for word in unpack_from(f"<{words}I", data):
        mixed = (word * 0x5BD1E995) & 0xFFFFFFFF
        mixed = ((mixed ^ (mixed >> 24)) * 0x5BD1E995) & 0xFFFFFFFF
        hashed = ((hashed * 0x5BD1E995) & 0xFFFFFFFF) ^ mixed
    if length & 3:
        hashed = ((hashed ^ int.from_bytes(data[words << 2 :], "little")) * 0x5BD1E995) & 0xFFFFFFFF
    hashed = ((hashed ^ (hashed >> 13)) * 0x5BD1E995) & 0xFFFFFFFF
    return hashed ^ (hashed >> 15)
