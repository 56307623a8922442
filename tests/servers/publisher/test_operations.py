"""The metrics, health and status of a running publisher; and the command observe."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from cdc_common.messages.topics import raw_topic
from tests.support.filler.process import FillerProcess
from tests.support.publisher.metrics import read_metrics
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.sent import at_least

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cassandra.cluster import Session

    from dev.local_stack.servers.cassandra import CassandraCluster
    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = pytest.mark.servers

ROWS = 300


def test_numbers_health_and_status(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy, kafka: KafkaBroker
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.t (p int PRIMARY KEY, v text) WITH cdc = true")
    publisher.start()
    for p in range(ROWS):
        cql.execute(f"INSERT INTO {fresh_keyspace}.t (p, v) VALUES ({p}, 'secret-{p}')")
    sent(fresh_keyspace, "t", at_least(ROWS))
    eventually(lambda: read_metrics(publisher)["cdc_publisher_in_flight_messages"] == 0)
    eventually(lambda: read_metrics(publisher)["cdc_publisher_messages_total"] >= ROWS)
    found = read_metrics(publisher)
    assert found["cdc_publisher_mutations_total"] >= ROWS
    assert found["cdc_publisher_delivery_seconds_count"] >= ROWS
    assert 0 < found["cdc_publisher_delivery_seconds_sum"] / found["cdc_publisher_delivery_seconds_count"] < 10
    assert found["cdc_publisher_lag_seconds"] < 20
    assert found["cdc_publisher_cdc_raw_full_at_bytes"] > found["cdc_publisher_cdc_raw_bytes"] > 0
    assert found["cdc_publisher_losing_changes"] == found["cdc_publisher_waiting"] == 0
    assert 10 << 20 < found["process_resident_memory_bytes"] < 128 << 20
    assert publisher.get("/health")[0] == 200
    status, shown = publisher.command("status")
    assert status == 0, shown
    assert "safe to stop: nothing is lost" in shown.splitlines()[-1]
    assert json.loads(publisher.command("status", "--json")[1])["messages"] >= ROWS
    kafka.pause()
    try:
        cql.execute(f"INSERT INTO {fresh_keyspace}.t (p, v) VALUES (-1, 'secret')")
        eventually(lambda: "Kafka has acknowledged nothing" in publisher.command("status")[1], 60.0)
        assert publisher.get("/health")[0] == 200  # the process's own loop is well
        assert read_metrics(publisher)["cdc_publisher_waiting"] == 1
    finally:
        kafka.resume()
    sent(fresh_keyspace, "t", at_least(ROWS + 1))
    assert "secret" not in publisher.log() + shown
    publisher.stop()
    status, shown = publisher.command("status")
    assert status == 3
    assert "CDC-006" in shown


def test_a_fillers_rows_measure_the_way_through_the_log(
    publisher: PublisherProcess, cassandra: CassandraCluster, cql: Session, tmp_path: Path, kafka: KafkaBroker
) -> None:
    settings = {name: publisher.settings[name] for name in ("cassandra.contact_points", "cassandra.port")} | {
        "node.cdc_raw_directory": cassandra.nodes[0].cdc_raw,
        "filler.max_segment_age_seconds": 10,
    }
    publisher.start()
    assert "cdc_publisher_log_latency_seconds" not in read_metrics(publisher)
    filler = FillerProcess(tmp_path / "filler.log", settings)
    try:
        eventually(lambda: read_metrics(publisher)["cdc_publisher_write_to_publish_seconds_count"] > 0, 60.0)
        found = read_metrics(publisher)
        assert 0 < found["cdc_publisher_log_latency_seconds"] < 60
        assert found["cdc_publisher_write_to_publish_seconds_sum"] > 0
        assert "from the last filler write to its publishing" in publisher.command("status")[1]
        assert publisher.stop() == 0
    finally:
        filler.kill()
        cql.execute("DROP KEYSPACE IF EXISTS cdc_filler")
    made = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics().topics
    prefix = str(publisher.settings["kafka.topic_prefix"])
    assert f"{prefix}.tables" in made
    assert not [topic for topic in made if topic.startswith(raw_topic(prefix, "cdc_filler", ""))]


def test_observing_counts_and_takes_nothing_away(
    publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy
) -> None:
    cql.execute(f"CREATE TABLE {fresh_keyspace}.t (p int PRIMARY KEY, v text) WITH cdc = true")
    for p in range(ROWS):
        cql.execute(f"INSERT INTO {fresh_keyspace}.t (p, v) VALUES ({p}, 'v')")
    time.sleep(1.5)  # the tests' commit log syncs once a second
    status, shown = publisher.command("observe", "--seconds", "2")
    assert status == 0, shown
    [line] = [line for line in shown.splitlines() if f"{fresh_keyspace}.t" in line]
    assert f"{ROWS} rows" in line
    publisher.start()
    sent(fresh_keyspace, "t", at_least(ROWS))
