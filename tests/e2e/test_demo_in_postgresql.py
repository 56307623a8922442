"""The demo's three tables arrive in PostgreSQL through Debezium's JDBC sink, with default settings, as in SELECT."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from cdc_common.messages.topics import change_topic
from tests.support.consumers import demo_tables

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from tests.support.consumers.jdbc_sink import JdbcSinks

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

STATEMENTS_A_SECOND, SECONDS = 300, 30
BATCH = 500  # what Kafka Connect gives a task at once


def test_rows_equal_select_after_updates_deletes_and_an_alter(
    client: CqlClient, servers: Servers, sinks: JdbcSinks, database: str
) -> None:
    demo_tables.create(client)
    demo_tables.write(client, STATEMENTS_A_SECOND, SECONDS)
    demo_tables.alter(client)
    for table in demo_tables.KEYS:
        selected = demo_tables.selected(client, table)
        topic = change_topic(servers.topic_prefix, demo_tables.KEYSPACE, table)
        messages = demo_tables.messages(servers, table, len(selected))
        batches = [messages[at : at + BATCH] for at in range(0, len(messages), BATCH)]
        seconds = sinks.run(database, topic, batches)
        sys.stdout.write(f"{table}: {len(messages)} messages, {len(messages) / seconds:.0f} a second\n")
        assert demo_tables.in_postgresql(sinks, database, topic, table) == selected
        assert any(message.value is None for message in messages)  # a delete
        assert len(selected) > 100
    client.execute(f"DROP KEYSPACE {demo_tables.KEYSPACE}")
