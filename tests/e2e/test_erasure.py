"""One person's row, followed through every place that docs/guides/secure.md names, until no byte of it is left."""

from __future__ import annotations

import logging
import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from dev.local_stack.clients import cql
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from stream_runtime.state.rocksdb import LOCK
from tests.support.e2e.erased_person import (
    DAY_SECONDS,
    DEAD,
    KEYSPACE,
    MOVED,
    OLD,
    PEOPLE,
    PLACES,
    RAW,
    SECONDS,
    TARGET,
    TOPICS,
    UNSEEN,
    Analysts,
    Person,
    alter_topic,
    commands,
    named_places,
    run,
    set_days,
    settings_of,
)
from tests.support.e2e.traces import files_below, topics_with
from tests.support.transformer.local_job import LocalJob

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900), pytest.mark.exhaustive]

log = logging.getLogger(__name__)
MOST_SECONDS = 180.0
SEGMENT_MIB, TOTAL_MIB = 1, 16
LIMIT_SECONDS = 8 * DAY_SECONDS
"""When compaction must have removed old values, after the page's command."""
FILLING = "x" * 31 * 1024
GRACE_SECONDS = 1
BROKER = {
    "compression.type": "uncompressed",  # so that bytes of a text can be found in the log's files
    "log.initial.task.delay.ms": "500",
    "log.retention.check.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
    "log.cleaner.backoff.ms": "500",
}
SETTINGS: dict[str, Setting] = {
    "kafka.raw_partitions": 1,
    "kafka.change_partitions": 1,
    "node.cdc_total_space_mib": TOTAL_MIB,
    "node.commitlog_segment_mib": SEGMENT_MIB,
    "publisher.on_full": "spool",
    "publisher.heartbeat_seconds": 1,
    "filler.max_segment_age_seconds": 2,
    "materializer.topics": "registry",
    "materializer.topics_seconds": 1,
    "materializer.purge_margin_seconds": 1,
    "materializer.idle_commit_seconds": 1,
    "materializer.snapshot_every_versions": 2,
    "materializer.changelog_retention_versions": 1,
    "materializer.changelog_retention_seconds": 2,
    "materializer.unused_state_seconds": 1,
    "materializer.max_old_value_hours": 7 * DAY_SECONDS / 3600,
}
DOCUMENTATION = f"""
namespace = "cdc.{KEYSPACE}"
source = "%s"

[fields.name]
pii = true
"""


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS,
        commitlog_segment_mib=SEGMENT_MIB,
        cdc_total_space_mib=TOTAL_MIB,
        yaml={"auto_snapshot": True},  # as Cassandra's own default
    )
    own: dict[str, Setting] = {
        "publisher.spool_directory": tmp_path / "spool",
        "publisher.processed_segments": str(tmp_path / "processed"),
    }
    made = Stack(options=options, settings=SETTINGS | own)
    made.kafka.settings.update(BROKER)
    with made as running:
        yield running


@pytest.fixture
def client(stack: Stack) -> Iterator[CqlClient]:
    with cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client:
        yield client


def make_tables(client: CqlClient) -> None:
    simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {simple}")
    plain = f"cdc = true AND gc_grace_seconds = {GRACE_SECONDS} AND compression = {{'enabled': false}}"
    for table in ("people", "moved", "gone"):
        client.execute(f"CREATE TABLE {KEYSPACE}.{table} (id text PRIMARY KEY, name text, n int) WITH {plain}")


class Traffic:
    """Someone else's row changes in both tables."""

    def __init__(self, client: CqlClient) -> None:
        self._client = client
        self._count = 0

    def write(self) -> None:
        self._count += 1
        for table in ("people", "moved"):
            self._client.execute(f"UPDATE {KEYSPACE}.{table} SET n = {self._count} WHERE id = 'somebody'")


def flag(stack: Stack, folder: Path, table: str) -> None:
    """Its names are personal."""
    file = folder / f"{table}.toml"
    file.write_text(DOCUMENTATION % table)
    run(stack.schematizer, "schematizer", "docs", "apply", str(file), "--url", stack.servers.registry)


def test_nothing_is_left_of_a_person(stack: Stack, client: CqlClient, tmp_path: Path) -> None:
    person = Person(stack, tmp_path)
    assert set(named_places()) == {*PLACES.values(), *TOPICS.values()} | UNSEEN
    flag(stack, tmp_path, "people")
    make_tables(client)
    Traffic(client).write()
    person_in_the_quarantine(person, client)
    person_in_the_spool(person, client)
    person.wait_for("change topic, target of a transformer", "change topic that a table has left")
    person_as_dead_letter(person)
    flag(stack, tmp_path, "moved")
    wait_until(lambda: MOVED in AdminClient({"bootstrap.servers": stack.servers.kafka}).list_topics().topics, MOVED, 60)
    with LocalJob(Analysts(stack, tmp_path)) as job:
        job.run_until(lambda: TARGET in person.places(person.value).get("change topic, target of a transformer", []))
        person_in_a_state_that_moved_away(person)
        stack.cassandra.cdc_nodes[0].nodetool("flush")
        person.find_places()
        assert person.seen == {*PLACES.values(), *TOPICS.values()}, "not seen everywhere, or where it should not be"

        erase(person, client)
        time.sleep(LIMIT_SECONDS)
        assert PEOPLE in topics_with(stack.servers.kafka, person.value), "a quiet partition's segment has rolled"
        traffic, began = Traffic(client), time.monotonic()
        while left := what_is_left(person):
            log.info("%.0f s: %s", time.monotonic() - began, left)
            assert time.monotonic() < began + MOST_SECONDS, (left, job.errors)
            traffic.write()
            job.run_batch()
            time.sleep(0.5)
    stack.check()


def what_is_left(person: Person) -> dict[str, list[str]]:
    """The value anywhere, the key in change topics. Whoever keeps segments goes on to delete them."""
    for file in files_below(person.folder / "processed"):
        file.unlink(missing_ok=True)
    left = person.places(person.value)
    tombstones = topics_with(person.stack.servers.kafka, person.key) & {PEOPLE, MOVED, TARGET}
    return left | ({"tombstone in a change topic, which has the key": sorted(tombstones)} if tombstones else {})


def person_in_the_quarantine(person: Person, client: CqlClient) -> None:
    """A batch with a table that is dropped before the publisher has seen it; Cassandra keeps a snapshot of it."""
    [publisher] = person.stack.publishers
    publisher.stop()
    (publisher.folder / "publisher-state" / "schema.json").unlink()
    columns = f"(id, name) VALUES ('{person.key}', '{person.value}')"
    both = (f"INSERT INTO {KEYSPACE}.{table} {columns}" for table in ("people", "gone"))
    client.execute(f"BEGIN UNLOGGED BATCH {'; '.join(both)}; APPLY BATCH")
    client.execute(f"DROP TABLE {KEYSPACE}.gone")
    publisher.start()
    person.wait_for("quarantine")


def person_in_the_spool(person: Person, client: CqlClient) -> None:
    """Kafka stands still until the segment with the rows has to make room."""
    person.stack.kafka.pause()
    for table in ("people", "moved"):
        insert = f"INSERT INTO {KEYSPACE}.{table} (id, name) VALUES ('{person.key}', '{person.value}')"
        client.execute(insert)
    deadline = time.monotonic() + SECONDS
    while not {"`cdc_raw`", "`publisher.spool_directory`"} <= person.find_places(at_files=True):
        assert time.monotonic() < deadline, person.seen
        for _ in range(32):
            client.execute(f"INSERT INTO {KEYSPACE}.people (id, name) VALUES ('somebody', '{FILLING}')")
    person.stack.kafka.resume()


def person_as_dead_letter(person: Person) -> None:
    """A message that no publisher has sent."""
    producer = Producer({"bootstrap.servers": person.stack.servers.kafka})
    producer.produce(RAW, f"unreadable {person.value}".encode(), person.key.encode(), 0)
    assert not producer.flush(SECONDS)
    person.wait_for("dead-letter topic")


def person_in_a_state_that_moved_away(person: Person) -> None:
    """The local state of a raw partition that this machine no longer works on."""
    [state] = (person.stack.materializer.folder / "materializer-state").glob(f"*/{RAW}-0")
    shutil.copytree(state, state.with_name(f"{RAW}-99"))
    person.wait_for("unused local states", "state", "changelogs, snapshots")


def erase(person: Person, client: CqlClient) -> None:
    """The page's steps."""
    stack = person.stack
    show = ("materializer", "state", "show", f"{KEYSPACE}.people", person.key, "--values")
    assert person.value in run(stack.materializer, *show)
    for table in ("people", "moved"):
        client.execute(f"DELETE FROM {KEYSPACE}.{table} WHERE id = '{person.key}'")
    wait_until(lambda: person.value not in run(stack.materializer, *show), "the delete in the state", SECONDS)
    time.sleep(GRACE_SECONDS + 1)
    [node] = stack.cassandra.cdc_nodes
    node.nodetool("flush")
    node.nodetool("compact", KEYSPACE)
    node.nodetool("clearsnapshot", "--all")
    [publisher] = stack.publishers
    [mutation] = [line for line in run(publisher, "publisher", "quarantine", "ls").splitlines() if " bytes " in line]
    run(publisher, "publisher", "quarantine", "discard", mutation.split()[0])
    letters = run(stack.materializer, "materializer", "dead-letters", "ls").splitlines()
    [letter] = [line for line in letters if " offset " in line]
    run(stack.materializer, "materializer", "dead-letters", "discard", letter.split()[0])
    of_changes, of_letters = (settings_of(command["--add-config"]) for command in commands("kafka-configs.sh")[:2])
    for topic in (PEOPLE, MOVED, TARGET):
        set_days(stack, topic, of_changes)
    for topic in (RAW, f"cdc.raw.{KEYSPACE}.moved"):
        set_days(stack, topic)
    alter_topic(stack, DEAD, of_letters)
    hour_ago = time.time() - 3600
    for lock in (stack.materializer.folder / "materializer-state").glob(f"*/{RAW}-99/slot-0/{LOCK}"):
        os.utime(lock, (hour_ago, hour_ago))
    admin = AdminClient({"bootstrap.servers": stack.servers.kafka})
    admin.delete_topics([OLD])[OLD].result()
