"""Another form of a running table stops that table alone; docs/guides/consumers.md says how its topic gets the form."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest
from confluent_kafka.admin import AdminClient

from cdc_common.messages.topics import change_topic
from tests.support.consumers.selected import read_topic
from tests.support.consumers.typed_topic import expected_rows
from tests.support.e2e.evolution import KEYSPACE
from tests.support.e2e.materializer_command import materializer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.stack import Stack
    from tests.support.e2e.evolution import MakeTable

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(600)]

NAME, BESIDE = "formed", "beside"
FORMS = f"{KEYSPACE}.{NAME} decimals=double maps=native"
COLUMNS = "v decimal, m map<text, int>"
ROWS = 20
SECONDS = 120.0


def restart(stack: Stack, forms: str) -> None:
    stack.materializer.stop()
    stack.materializer.settings["materializer.type_forms"] = forms
    stack.materializer.start()


def wait(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def delete_topic(servers: Servers, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers.kafka})
    admin.delete_topics([topic])[topic].result()
    for part in ("key", "value"):
        for question in ("", "?permanent=true"):  # a subject is deleted softly first
            urlopen(Request(f"{servers.registry}/subjects/{topic}-{part}{question}", method="DELETE")).close()  # noqa: S310 - our own http address


def test_a_topic_gets_another_form(table: MakeTable, stack: Stack, client: CqlClient, servers: Servers) -> None:
    formed, beside = table(NAME, COLUMNS), table(BESIDE, COLUMNS)
    for t in (formed, beside):
        t.run(*(f"INSERT INTO $t (p, c, v, m) VALUES (1, {c}, {c}.50, {{'a': {c}}})" for c in range(ROWS)))
        t.run("DELETE FROM $t WHERE p = 1 AND c = 0")
        t.settle()
    topic = change_topic(servers.topic_prefix, KEYSPACE, NAME)
    before = expected_rows(read_topic(servers, topic, ROWS + 1))[json.dumps({"p": 1, "c": 2})]
    assert (before["v"], before["m"]) == ("2.50", '{"a":2}')

    forms = f"{stack.materializer.settings['materializer.type_forms']}, {FORMS}"
    restart(stack, forms)
    wait(lambda: "CDC-099" in stack.materializer.output())
    beside.run("UPDATE $t SET v = 7.25 WHERE p = 1 AND c = 1")
    beside.settle()  # all others go on
    formed.run("UPDATE $t SET v = 7.25 WHERE p = 1 AND c = 1")  # the publisher sends it

    stack.materializer.stop()
    delete_topic(servers, topic)
    stack.materializer.start()
    wait(lambda: topic in AdminClient({"bootstrap.servers": servers.kafka}).list_topics(timeout=10).topics)
    materializer(stack, "resend", f"{KEYSPACE}.{NAME}", "--yes")
    materializer(stack, "retry")
    selected = select(client)
    wait(lambda: shown(servers, topic) == selected)
    assert selected[json.dumps({"p": 1, "c": 1})] == (7.25, {"a": 1})


def select(client: CqlClient) -> dict[str, tuple[float | None, dict[str, int] | None]]:
    found = client.rows(KEYSPACE, NAME)
    return {
        json.dumps({"p": row["p"], "c": row["c"]}): (
            None if row["v"] is None else float(row["v"]),
            None if row["m"] is None else dict(row["m"]),
        )
        for row in found
    }


def shown(servers: Servers, topic: str) -> dict[str, tuple[float | None, dict[str, int] | None]]:
    return {key: (row["v"], row["m"]) for key, row in expected_rows(read_topic(servers, topic, 1)).items()}
