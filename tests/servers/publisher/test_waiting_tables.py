"""Tables that Kafka cannot have, or this build cannot read, wait beside a table that goes on; the named fixes work."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.sent import int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra.cluster import Session

    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = pytest.mark.servers

LONG_KEYSPACE, LONG_TABLE = "k" * 40, "t" * 222
REPLICATION = "{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}"
DEEP = "frozen<list<" * 101 + "int" + ">>" * 101


@pytest.fixture
def keyspaces(cql: Session) -> Iterator[Callable[[str], None]]:
    """Makes keyspaces, which are dropped again."""
    made = []

    def make(name: str) -> None:
        made.append(name)
        cql.execute(f"CREATE KEYSPACE {name} WITH replication = {REPLICATION}")

    yield make
    for name in made:
        cql.execute(f"DROP KEYSPACE IF EXISTS {name}")


@contextmanager
def going_on(cql: Session, keyspace: str, sent: SentBy) -> Iterator[None]:
    """Another table gets a row before and after, and both are published."""
    cql.execute(f"CREATE TABLE IF NOT EXISTS {keyspace}.good (id int PRIMARY KEY) WITH cdc = true")
    number = cql.execute(f"SELECT count(*) FROM {keyspace}.good").one()[0]
    cql.execute(f"INSERT INTO {keyspace}.good (id) VALUES ({number})")
    yield
    cql.execute(f"INSERT INTO {keyspace}.good (id) VALUES ({number + 1})")
    wanted = {int_value(key) for key in range(number + 2)}
    sent(keyspace, "good", lambda found: {row.key for row in rows(found)} >= wanted)


def waits(publisher: PublisherProcess, words: str) -> None:
    """The status names the table and the reason."""
    eventually(lambda: words in publisher.command("status")[1])
    assert publisher.is_running()


def waits_no_more(publisher: PublisherProcess) -> None:
    eventually(lambda: "table waits" not in publisher.command("status")[1])
    assert publisher.is_running()
    assert "Traceback" not in publisher.log()


@pytest.mark.parametrize("fix", ["ALTER TABLE {} WITH cdc = false", "DROP TABLE {}"])
def test_a_name_that_is_too_long(
    publisher: PublisherProcess,
    cql: Session,
    fresh_keyspace: str,
    sent: SentBy,
    keyspaces: Callable[[str], None],
    fix: str,
) -> None:
    keyspaces(LONG_KEYSPACE)
    table = f"{LONG_KEYSPACE}.{LONG_TABLE}"
    publisher.start()
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(f"CREATE TABLE {table} (id int PRIMARY KEY) WITH cdc = true")
        cql.execute(f"INSERT INTO {table} (id) VALUES (1)")
        waits(publisher, "CDC-062")
    assert "cdc_publisher_waiting_tables 1.0" in publisher.get("/metrics")[1]
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(fix.format(table))
        waits_no_more(publisher)
    publisher.stop()
    with going_on(cql, fresh_keyspace, sent):  # the log still has its row
        publisher.start()
    waits_no_more(publisher)
    assert publisher.stop() == 0


def test_names_that_kafka_does_not_distinguish(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy, keyspaces: Callable[[str], None]
) -> None:
    first, second = f"{fresh_keyspace}x_b", f"{fresh_keyspace}x"
    keyspaces(first)
    keyspaces(second)
    publisher.start()
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(f"CREATE TABLE {first}.c (id int PRIMARY KEY) WITH cdc = true")
        cql.execute(f"INSERT INTO {first}.c (id) VALUES (1)")
        sent(first, "c", lambda found: bool(rows(found)))
        cql.execute(f"CREATE TABLE {second}.b_c (id int PRIMARY KEY) WITH cdc = true")
        cql.execute(f"INSERT INTO {second}.b_c (id) VALUES (1)")
        waits(publisher, "CDC-023")
    publisher.stop()
    with going_on(cql, fresh_keyspace, sent):
        publisher.start()
        waits(publisher, f"{second}.b_c")
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(f"ALTER TABLE {second}.b_c WITH cdc = false")
        waits_no_more(publisher)
    publisher.stop()
    with going_on(cql, fresh_keyspace, sent):
        publisher.start()
    waits_no_more(publisher)
    assert publisher.stop() == 0


def test_a_type_that_is_nested_too_deep(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    """Without cdc it does not matter, not even beside a published table in one batch."""
    plain, deep = f"{fresh_keyspace}.plain", f"{fresh_keyspace}.deep"
    cql.execute(f"CREATE TABLE {fresh_keyspace}.beside (id int PRIMARY KEY) WITH cdc = true")
    cql.execute(f"CREATE TABLE {plain} (id int PRIMARY KEY, v {DEEP}, m map<int, {DEEP}>)")
    value = "[" * 101 + "1" + "]" * 101
    both = (
        f"BEGIN BATCH INSERT INTO {plain} (id, v, m) VALUES (1, {value}, {{1: {value}}});"
        f" INSERT INTO {fresh_keyspace}.beside (id) VALUES (1); APPLY BATCH"
    )
    publisher.start()
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(both)
        sent(fresh_keyspace, "beside", lambda found: bool(rows(found)))
    assert "table waits" not in publisher.command("status")[1]
    assert "quarantined" not in publisher.command("status")[1]
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(f"CREATE TABLE {deep} (id int PRIMARY KEY, w int, v {DEEP}) WITH cdc = true")
        cql.execute(f"INSERT INTO {deep} (id, w) VALUES (1, 1)")
        waits(publisher, f"the type of the column v of {deep} cannot be read")
    with going_on(cql, fresh_keyspace, sent):
        cql.execute(f"DROP TABLE {deep}")
        waits_no_more(publisher)
    assert publisher.stop() == 0
