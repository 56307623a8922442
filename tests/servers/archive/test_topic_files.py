"""A new topic file is archived with no other step."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import fastavro
import pytest
from confluent_kafka import Producer
from pyiceberg.catalog.sql import SqlCatalog

from cdc_common.clients.registry.schematizer import SchematizerClient
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import spark_environment
from tests.support.schematizer.topic_commands import TopicCommands, write_settings
from tests.support.schematizer.topic_repository import CATALOGUE, CITY, FIELDS, TOPIC, write_topic

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.schematizer.registry_process import Registry

LOG = logging.getLogger(__name__)
WAIT_SECONDS = 300.0
MOST_SECONDS = 120.0
"""The most time from the merge of a file to the first row of a query."""
pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(800)]


def test_from_a_new_file_to_a_query(kafka: KafkaBroker, registry: Registry, topic_prefix: str, tmp_path: Path) -> None:
    settings = {"kafka": {"bootstrap_servers": kafka.bootstrap_servers}, "registry": {"url": registry.url}}
    root = tmp_path / "topics"
    root.mkdir()
    name = CATALOGUE.replace("{environment}.{domain}", f"{topic_prefix}.{{environment}}.{{domain}}")
    (root / "catalogue.toml").write_text(name + '[archive]\nprincipal = "User:archive"\ngroup = "archive"\n')
    write_topic(root, "staging", "plain")
    commands = TopicCommands(root, write_settings(tmp_path / "cdc.toml", settings))
    assert commands.run("apply", "staging").status == 0

    uri = f"sqlite:///{tmp_path}/catalog.db"
    own = {
        "deployment": "staging",
        "location": f"{tmp_path}/lake",
        "spool_directory": f"{tmp_path}/spool",
        "group_id": topic_prefix,
        "events_topic": f"{topic_prefix}.files",
        "catalog_type": "sql",
        "catalog_uri": uri,
        "register_seconds": "1",
        "cut_seconds": "2",
        "trigger_interval_ms": "500",
        "spark_master": "local[2]",
        "operations_port": "0",
    }
    flags = [f"--set=archive.{key}={value}" for key, value in own.items()]
    command = [sys.executable, "-m", "archive", "run", "--config", str(commands.settings), *flags]
    environment = {**os.environ, "PYTHONPATH": str(project_root()), **spark_environment(tmp_path)}
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=project_root(), env=environment, stdout=output, stderr=output)
    try:
        _wait_until_it_runs(process, log)
        started = time.monotonic()
        write_topic(root, "staging", "orders", TOPIC + '[archive]\ntable = "lake.orders"\nbucket = "day"\n')
        applied = commands.run("apply", "staging")
        assert applied.status == 0, applied.errors
        applied_at = time.monotonic()
        _send(kafka, registry, f"{topic_prefix}.staging.shop.orders")
        catalog = SqlCatalog("lake", uri=uri)
        while _event_ids(catalog) != ["one"]:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() - started < WAIT_SECONDS, log.read_text()
            time.sleep(0.5)
        queried_at = time.monotonic()
        LOG.info("from file to apply: %.1f s, to query: %.1f s", applied_at - started, queried_at - started)
        assert queried_at - started <= MOST_SECONDS
        assert [table for _, table in catalog.list_tables("lake")] == ["orders"], "plain has no [archive]"
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0, log.read_text()
    finally:
        process.kill()


def _wait_until_it_runs(process: subprocess.Popen[bytes], log: Path) -> None:
    """Spark says so when the query has begun its first batch."""
    deadline = time.monotonic() + WAIT_SECONDS
    while "ready" not in log.read_text() and "started" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)


def _send(kafka: KafkaBroker, registry: Registry, topic: str) -> None:
    with SchematizerClient(registry.url) as client:
        newest = client.latest_schema(topic)
    body = io.BytesIO()
    record = {"event_id": "one", "event_time": 1_790_000_000_000_000, "city": None}
    parsed = fastavro.parse_schema({"type": "record", "name": "orders", "fields": [*FIELDS, CITY]})
    fastavro.schemaless_writer(body, parsed, record)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b"\0" + newest.schema_id.to_bytes(4, "big") + body.getvalue())
    assert producer.flush(60) == 0


def _event_ids(catalog: SqlCatalog) -> list[str]:
    """The rows of the table, by PyIceberg."""
    if not catalog.namespace_exists("lake") or not catalog.table_exists("lake.orders"):
        return []
    ids: list[str] = catalog.load_table("lake.orders").scan().to_arrow().column("event_id").to_pylist()
    return ids
