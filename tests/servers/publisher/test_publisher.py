"""The publisher beside a real Cassandra and a real Kafka: all writes are published, whatever is killed."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cassandra.concurrent import execute_concurrent_with_args
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from cassandra_storage.formats.rows.row import ComplexColumnData
from cdc_common.messages.topics import partition_for, raw_topic
from publisher.log.cdc_raw import list_cdc_segments
from publisher.upkeep.housekeeping import SAVE_SECONDS
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.sent import at_least, cell, int_value, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from cdc_common.messages.watermarks import Watermark
    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = pytest.mark.servers


def test_statements_come_out_as_updates_of_single_rows(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    table = f"{fresh_keyspace}.orders"
    cql.execute(
        f"CREATE TABLE {table} (id int, line int, note text, tags set<text>, owner text STATIC,"
        " PRIMARY KEY (id, line)) WITH cdc = true"
    )
    publisher.start()
    cql.execute(f"INSERT INTO {table} (id, line, note, tags) VALUES (1, 1, 'a', {{'x', 'y'}}) USING TIMESTAMP 1001")
    cql.execute(f"UPDATE {table} USING TIMESTAMP 1002 SET note = 'b', owner = 'o' WHERE id = 1 AND line = 2")
    cql.execute(f"DELETE FROM {table} USING TIMESTAMP 1003 WHERE id = 1 AND line = 1")
    cql.execute(f"DELETE FROM {table} USING TIMESTAMP 1004 WHERE id = 1 AND line > 5")
    cql.execute(f"DELETE FROM {table} USING TIMESTAMP 1005 WHERE id = 1")
    cql.execute(
        f"BEGIN UNLOGGED BATCH USING TIMESTAMP 1006 INSERT INTO {table} (id, line, note) VALUES (2, 1, 'c');"
        f" INSERT INTO {table} (id, line, note) VALUES (2, 2, 'd'); APPLY BATCH"
    )
    found = rows(sent(fresh_keyspace, "orders", at_least(8)))
    of_one = [raw_message for raw_message in found if raw_message.key == int_value(1)]
    kinds = [raw_message.message.kind for raw_message in of_one]
    assert kinds == ["row", "static", "row", "row", "range_deletion", "partition_deletion"]
    insert, static, update, delete, range_deletion, partition_deletion = [raw_message.update for raw_message in of_one]
    assert insert is not None
    assert insert.rows[0].clustering == (int_value(1),)
    assert insert.rows[0].liveness.timestamp == 1001
    assert cell(insert.rows[0], "note").value == b"a"
    tags = insert.rows[0].columns["tags"]
    assert isinstance(tags, ComplexColumnData)
    assert [element.path for element in tags.cells] == [b"x", b"y"]
    assert static is not None
    assert static.static_row is not None
    assert cell(static.static_row, "owner").value == b"o"
    assert static.rows == ()
    assert update is not None
    assert update.static_row is None
    assert update.rows[0].liveness.is_empty
    assert cell(update.rows[0], "note").timestamp == 1002
    assert delete is not None
    assert delete.rows[0].deletion.time.marked_for_delete_at == 1003
    assert range_deletion is not None
    assert range_deletion.range_tombstones[0].start.values == (int_value(5),)
    assert partition_deletion is not None
    assert partition_deletion.deletion.marked_for_delete_at == 1005
    of_two = [raw_message for raw_message in found if raw_message.key == int_value(2)]
    assert [cell(raw_message.update.rows[0], "note").value for raw_message in of_two if raw_message.update] == [
        b"c",
        b"d",
    ]
    assert [raw_message.message.index for raw_message in of_two] == [0, 1]
    assert len({(raw_message.message.segment, raw_message.message.position) for raw_message in of_two}) == 1
    assert {raw_message.partition for raw_message in found} == {
        partition_for(int_value(1), 3),
        partition_for(int_value(2), 3),
    }
    host = cql.execute("SELECT host_id FROM system.local").one().host_id
    assert {raw_message.message.host_id for raw_message in found} == {host.bytes}
    assert publisher.stop() == 0


def test_tables_made_altered_and_switched_on_while_it_runs(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    publisher.start(publisher__schema_poll_seconds=60)
    cql.execute(f"CREATE TYPE {fresh_keyspace}.place (street text, number int)")
    cql.execute(f"CREATE TABLE {fresh_keyspace}.made (id int PRIMARY KEY, v text, gone text, at place) WITH cdc = true")
    cql.execute(f"INSERT INTO {fresh_keyspace}.made (id, v, gone) VALUES (1, 'a', 'g')")
    cql.execute(f"ALTER TABLE {fresh_keyspace}.made ADD w text")
    cql.execute(f"INSERT INTO {fresh_keyspace}.made (id, w, at) VALUES (2, 'b', {{street: 's', number: 1}})")
    cql.execute(f"INSERT INTO {fresh_keyspace}.made (id, gone) VALUES (3, 'g')")
    cql.execute(f"ALTER TABLE {fresh_keyspace}.made DROP gone")
    cql.execute(f"INSERT INTO {fresh_keyspace}.made (id, v) VALUES (4, 'd')")
    found = rows(sent(fresh_keyspace, "made", at_least(4)))
    assert {raw_message.key for raw_message in found} == {int_value(number) for number in (1, 2, 3, 4)}
    cql.execute(f"CREATE TABLE {fresh_keyspace}.later (id int PRIMARY KEY, v text)")
    cql.execute(f"INSERT INTO {fresh_keyspace}.later (id, v) VALUES (1, 'no')")
    cql.execute(f"ALTER TABLE {fresh_keyspace}.later WITH cdc = true")
    cql.execute(f"INSERT INTO {fresh_keyspace}.later (id, v) VALUES (2, 'yes')")
    # The first row may come too, if both became durable in one sync.
    sent(fresh_keyspace, "later", lambda found: any(raw_message.key == int_value(2) for raw_message in found))
    assert publisher.stop() == 0


def test_a_batch_over_tables_with_and_without_cdc(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    for name, options in (("plain", ""), ("one", "WITH cdc = true"), ("two", "WITH cdc = true")):
        cql.execute(f"CREATE TABLE {fresh_keyspace}.{name} (id int PRIMARY KEY, m map<text, int>) {options}")
    publisher.start()
    inserts = "; ".join(
        f"INSERT INTO {fresh_keyspace}.{name} (id, m) VALUES (1, {{'a': 1}})" for name in ("plain", "one", "two")
    )
    cql.execute(f"BEGIN UNLOGGED BATCH {inserts}; APPLY BATCH")
    [one] = rows(sent(fresh_keyspace, "one", at_least(1)))
    [two] = rows(sent(fresh_keyspace, "two", at_least(1)))
    assert one.message.position == two.message.position
    assert {one.message.index, two.message.index} == {0, 1}
    assert publisher.stop() == 0


def test_killed_again_and_again_it_loses_nothing(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    count, seed = 6000, random.randrange(2**32)
    chance = random.Random(seed)
    cql.execute(f"CREATE TABLE {fresh_keyspace}.load (id int PRIMARY KEY, v text) WITH cdc = true")
    insert = cql.prepare(f"INSERT INTO {fresh_keyspace}.load (id, v) VALUES (?, ?)")
    arguments = [(number, "v" * 400) for number in range(count)]
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(execute_concurrent_with_args, cql, insert, arguments, concurrency=50)
        while not load.done():
            publisher.start()
            time.sleep(chance.uniform(0, 1.5))
            publisher.kill()
    publisher.start()
    found = rows(sent(fresh_keyspace, "load", lambda sent: len({row.key for row in rows(sent)}) >= count))
    times = Counter(
        (raw_message.message.segment, raw_message.message.position, raw_message.message.index) for raw_message in found
    )
    assert len(times) == count, f"seed {seed}"
    assert publisher.stop() == 0


def publish_one(publisher: PublisherProcess, cql: Session, keyspace: str, sent: SentBy) -> None:
    """It runs, and of the table `waiting` the row 0 has come out."""
    cql.execute(f"CREATE TABLE {keyspace}.waiting (id int PRIMARY KEY, v text) WITH cdc = true")
    publisher.start()
    cql.execute(f"INSERT INTO {keyspace}.waiting (id, v) VALUES (0, 'a')")
    sent(keyspace, "waiting", at_least(1))


def test_it_waits_for_a_kafka_that_answers_nothing(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, kafka: KafkaBroker, sent: SentBy
) -> None:
    publish_one(publisher, cql, fresh_keyspace, sent)
    kafka.pause()
    try:
        for number in range(1, 100):
            cql.execute(f"INSERT INTO {fresh_keyspace}.waiting (id, v) VALUES ({number}, 'b')")
        eventually(lambda: says(publisher, "in_flight") >= 99)
        in_flight = says(publisher, "in_flight")
        publisher.kill()
    finally:
        kafka.resume()
    publisher.start()
    found = rows(sent(fresh_keyspace, "waiting", lambda sent: len({row.key for row in rows(sent)}) >= 100))
    assert {raw_message.key for raw_message in found} == {int_value(number) for number in range(100)}
    eventually(lambda: says(publisher, "messages") >= 99)
    assert says(publisher, "messages") <= in_flight
    assert publisher.stop() == 0


def says(publisher: PublisherProcess, name: str) -> int:
    """A number of the publisher's status, which is taken once a second."""
    return int(json.loads(publisher.get("/status")[1])[name])


def test_killed_with_nothing_in_flight_it_sends_nothing_again(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    publish_one(publisher, cql, fresh_keyspace, sent)
    for number in range(1, 100):
        cql.execute(f"INSERT INTO {fresh_keyspace}.waiting (id, v) VALUES ({number}, 'b')")
    sent(fresh_keyspace, "waiting", at_least(100))
    eventually(lambda: says(publisher, "in_flight") == 0)
    time.sleep(2 * SAVE_SECONDS)
    publisher.kill()
    publisher.start()
    cql.execute(f"INSERT INTO {fresh_keyspace}.waiting (id, v) VALUES (100, 'c')")
    sent(fresh_keyspace, "waiting", at_least(101))
    eventually(lambda: says(publisher, "messages") > 0)
    assert says(publisher, "messages") == 1
    assert publisher.stop() == 0


def test_started_while_kafka_is_away_it_waits(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, kafka: KafkaBroker, sent: SentBy
) -> None:
    publish_one(publisher, cql, fresh_keyspace, sent)
    assert publisher.stop() == 0
    since = len(publisher.log())
    kafka.pause()
    try:
        publisher.begin(kafka__connect_timeout_seconds=150)
        eventually(lambda: "Kafka has not answered for" in publisher.command("status")[1])
        began = time.monotonic()
        assert publisher.stop() == 0
        assert time.monotonic() - began < 100, "it waited for the answer"
        publisher.begin(kafka__connect_timeout_seconds=2)
        publisher.wait_for("CDC-020", since)
        cql.execute(f"INSERT INTO {fresh_keyspace}.waiting (id, v) VALUES (1, 'a')")
        assert publisher.get("/health")[0] == 200
        eventually(lambda: "CDC-020" in publisher.command("status")[1])
        assert publisher.stop() == 0
        assert '"ready"' not in publisher.log()[since:]
        publisher.begin(kafka__connect_timeout_seconds=2)
    finally:
        kafka.resume()
    publisher.wait_for('"ready"', since)
    assert len(rows(sent(fresh_keyspace, "waiting", at_least(2)))) == 2
    eventually(lambda: "waiting" not in publisher.command("status")[1])
    assert publisher.stop() == 0


def test_finished_segments_are_deleted_once_acknowledged(
    publisher: PublisherProcess, cassandra: CassandraCluster, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    folder = cassandra.nodes[0].cdc_raw
    assert folder is not None
    cql.execute(f"CREATE TABLE {fresh_keyspace}.big (id int PRIMARY KEY, v blob) WITH cdc = true")
    publisher.start()
    before = {file.id for file in list_cdc_segments(folder)}
    insert = cql.prepare(f"INSERT INTO {fresh_keyspace}.big (id, v) VALUES (?, ?)")
    for number in range(100):  # 6 MB: more than a segment
        cql.execute(insert, (number, bytes(60_000)))
    sent(fresh_keyspace, "big", at_least(100))
    deadline = time.monotonic() + 20
    while min(before) in {file.id for file in list_cdc_segments(folder)}:
        assert time.monotonic() < deadline, publisher.log()
        time.sleep(0.2)
    assert not (folder / f"CommitLog-7-{min(before)}_cdc.idx").exists()
    assert '"segment finished"' in publisher.log()
    assert publisher.stop() == 0


def test_a_watermark_passes_what_is_acknowledged_and_raw_topics_get_no_heartbeats(
    publisher: PublisherProcess,
    cql: Session,
    fresh_keyspace: str,
    sent: SentBy,
    watermarks: Callable[[], list[Watermark]],
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.quiet (id int PRIMARY KEY, v text) WITH cdc = true")
    publisher.start(publisher__heartbeat_seconds=1)
    cql.execute(f"INSERT INTO {fresh_keyspace}.quiet (id, v) VALUES (1, 'a')")
    written = time.time()
    [row] = sent(fresh_keyspace, "quiet", at_least(1))

    def has_passed(watermark: Watermark) -> bool:
        at = watermark.tables.get(row.message.table_id)
        place = (row.message.segment, row.message.position)
        return at is not None and at.clock > written * 1e6 and (watermark.segment, watermark.position) >= place

    eventually(lambda: any(map(has_passed, watermarks())))
    assert {sent_watermark.host_id for sent_watermark in watermarks()} == {row.message.host_id}
    time.sleep(2)
    assert len(sent(fresh_keyspace, "quiet", at_least(1))) == 1
    assert publisher.stop() == 0


def test_once_it_has_run_it_starts_with_the_registry_down(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.known (id int PRIMARY KEY, v text) WITH cdc = true")
    status, log = publisher.fail(registry__url="http://127.0.0.1:1")
    assert (status, "CDC-030" in log, "Traceback" in log) == (3, True, False)
    publisher.start()
    publisher.stop()
    state = Path(str(publisher.settings["publisher.state_directory"]))
    ids = json.loads((state / "registry.json").read_text())
    assert ids["ids"][f"{publisher.settings['kafka.topic_prefix']}.raw.{fresh_keyspace}.known-value"] == 7
    publisher.settings["registry.url"] = "http://127.0.0.1:1"
    assert publisher.fail()[0] == 3  # another registry knows other ids
    (state / "registry.json").write_text(json.dumps({**ids, "registry": _hash("http://127.0.0.1:1")}))
    publisher.start()
    cql.execute(f"INSERT INTO {fresh_keyspace}.known (id, v) VALUES (1, 'a')")
    assert rows(sent(fresh_keyspace, "known", at_least(1)))
    publisher.stop()


def _hash(url: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 - only here

    return sha256(url.encode()).hexdigest()


def test_a_raw_topic_with_the_producers_time_waits_until_it_is_altered(
    publisher: PublisherProcess,
    cql: Session,
    fresh_keyspace: str,
    kafka: KafkaBroker,
    topic_prefix: str,
    sent: SentBy,
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.made (id int PRIMARY KEY, v text) WITH cdc = true")
    topic = raw_topic(topic_prefix, fresh_keyspace, "made")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(30)
    publisher.start()
    cql.execute(f"INSERT INTO {fresh_keyspace}.made (id, v) VALUES (1, 'a')")
    eventually(lambda: "CDC-022" in publisher.command("status")[1])
    assert "message.timestamp.type" in publisher.log()
    entry = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(30)
    assert rows(sent(fresh_keyspace, "made", at_least(1)))
    assert publisher.stop() == 0
    assert "Traceback" not in publisher.log()


def test_mutations_of_an_unknown_dropped_table_are_skipped(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    """Written and dropped before any publisher saw it."""
    cql.execute(f"CREATE TABLE {fresh_keyspace}.stays (id int PRIMARY KEY, v text) WITH cdc = true")
    cql.execute(f"CREATE TABLE {fresh_keyspace}.gone (id int PRIMARY KEY, v text) WITH cdc = true")
    cql.execute(f"INSERT INTO {fresh_keyspace}.gone (id, v) VALUES (1, 'a')")
    cql.execute(f"INSERT INTO {fresh_keyspace}.stays (id, v) VALUES (2, 'b')")
    cql.execute(f"DROP TABLE {fresh_keyspace}.gone")
    publisher.start()
    [one] = rows(sent(fresh_keyspace, "stays", at_least(1)))
    assert one.key == int_value(2)
    [line] = [line for line in publisher.log().splitlines() if "CDC-043" in line]
    assert json.loads(line)["table"] in {f"{fresh_keyspace}.gone", "unknown"}  # a segment without CDC data is not shown


def test_a_table_dropped_while_it_was_down_is_still_published(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.dropped (id int PRIMARY KEY, v text) WITH cdc = true")
    publisher.start()
    publisher.stop()
    cql.execute(f"INSERT INTO {fresh_keyspace}.dropped (id, v) VALUES (1, 'a')")
    cql.execute(f"DROP TABLE {fresh_keyspace}.dropped")
    publisher.start()
    [one] = rows(sent(fresh_keyspace, "dropped", at_least(1)))
    assert one.key == int_value(1)
    assert publisher.stop() == 0
