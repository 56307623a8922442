"""A table's schema keeps its time if a statement leaves the schema as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cdc_common.messages.tables import canonical, digest, from_json
from publisher.tables.published_table import PublishedTable
from publisher.topics.raw_topics import FoundTopic, RawTopics
from tests.support.materializer.raw_builder import TABLE

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata
    from publisher.inflight import PendingMessages

FOUND = FoundTopic("cdc.raw.ks.t", 1, 1, is_new=False)
OTHER = replace(TABLE, regular_columns=TABLE.regular_columns[:-1])


class Topic:
    """The tables topic of all hosts, as publisher.kafka.topic_admin.TopicAdmin and publisher.kafka.sender.Sender."""

    def __init__(self) -> None:
        self.messages: list[tuple[bytes, bytes]] = []

    def check_reachable(self) -> None: ...

    def ensure_tables_topic(self, _topic: str) -> None: ...

    def ensure_watermarks_topic(self, _topic: str) -> None: ...

    def read_latest_values(self, _topic: str, first: int = 0) -> tuple[dict[bytes, bytes], int]:
        return dict(self.messages[first:]), len(self.messages)

    def take_refusals(self, _topic: str) -> list[object]:
        return []

    def send(self, _topic: str, key: bytes, value: bytes, pending: PendingMessages) -> bool:
        self.messages.append((key, value))
        pending.acknowledge()
        return True

    def poll(self, _seconds: float) -> None: ...

    def since(self, table: TableMetadata) -> int:
        """Return since when the table has this schema, as the topic says it."""
        return from_json(dict(self.messages)[table.id.bytes + digest(canonical(table))]).altered_at


class Host:
    """A publisher, as far as it sends schemas."""

    def __init__(self, topic: Topic) -> None:
        self.raw_topics = RawTopics("cdc", "test", cast("Any", topic), cast("Any", topic), cast("Any", None))
        self.raw_topics.open_tables_topic()

    def sees(self, table: TableMetadata, at: int) -> None:
        """Its node has this schema, whose last statement had this time."""
        altered = replace(table, altered_at=at)
        self.raw_topics.announce(PublishedTable(altered, altered.id.bytes, digest(canonical(altered))), FOUND)


def test_a_statement_that_leaves_the_schema_as_it_is_does_not_count() -> None:
    """A comment, or cdc off and on: what was written since the last change was written under that change."""
    topic = Topic()
    host = Host(topic)
    host.sees(TABLE, 1)
    host.sees(OTHER, 3)
    host.sees(OTHER, 7)
    assert (topic.since(TABLE), topic.since(OTHER)) == (1, 3)
    assert len(topic.messages) == 2


def test_a_schema_that_comes_back_counts_from_its_return() -> None:
    topic = Topic()
    host = Host(topic)
    for at, table in ((1, TABLE), (3, OTHER), (5, TABLE), (7, TABLE)):
        host.sees(table, at)
    assert (topic.since(OTHER), topic.since(TABLE)) == (3, 5)


def test_a_publisher_without_a_state_finds_the_time_in_the_topic() -> None:
    topic = Topic()
    Host(topic).sees(TABLE, 1)
    Host(topic).sees(TABLE, 5)
    assert topic.since(TABLE) == 1


def test_a_node_that_is_behind_takes_no_time_back() -> None:
    topic = Topic()
    early = Host(topic)
    early.sees(TABLE, 1)
    other = Host(topic)
    for at, table in ((3, OTHER), (5, TABLE)):
        other.sees(table, at)
    Host(topic).sees(TABLE, 1)
    assert topic.since(TABLE) == 5


def test_a_schema_that_another_publisher_saw_between_counts() -> None:
    topic = Topic()
    one, two = Host(topic), Host(topic)
    one.sees(TABLE, 1)
    two.sees(OTHER, 3)
    one.raw_topics.read_requests()
    one.sees(TABLE, 5)
    assert topic.since(TABLE) == 5


def test_another_gc_grace_is_sent_with_the_same_time() -> None:
    topic = Topic()
    host = Host(topic)
    host.sees(TABLE, 1)
    host.sees(replace(TABLE, gc_grace_seconds=TABLE.gc_grace_seconds + 1), 5)
    assert topic.since(TABLE) == 1
    assert from_json(topic.messages[-1][1]).gc_grace_seconds == TABLE.gc_grace_seconds + 1
