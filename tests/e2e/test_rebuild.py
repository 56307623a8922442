"""A table whose state is lost starts over: `rebuild`, then the CDC datacenter's own rebuild, while clients write."""

from __future__ import annotations

import json
import random
import shutil
import threading
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from cdc_common.errors.codes import CdcError
from cdc_common.messages.closing_deletes import CAUSE
from dev.local_stack.clients import cql
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History, chain_problems
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from tests.support.e2e.evolution import KEYSPACE, Table
from tests.support.e2e.materializer_command import materializer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.clients.change import Change, Record
    from dev.local_stack.clients.cql import CqlClient

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

MAIN = "main"
NAME = "orders"
SHORT_TTL = 15
BEGUN_US = time.time_ns() // 1000
ROWS = 3000
KEYS = 200
REFUSED = "Discovered existing bootstrap data"
REPLICATION = f"{{'class': 'NetworkTopologyStrategy', '{MAIN}': 1, '{CDC_DATACENTER}': 1}}"
COLUMNS = "p int, c int, v text, n int, l list<int>, s text static, PRIMARY KEY (p, c)"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    settings = {"publisher.heartbeat_seconds": 1}
    with Stack(datacenters={MAIN: 1, CDC_DATACENTER: 1}, options=options, settings=settings) as running:
        yield running


@pytest.fixture(scope="module")
def client(stack: Stack) -> Iterator[CqlClient]:
    with cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client:
        yield client


def statements(chance: random.Random, count: int) -> Iterator[str]:
    """Rows, rows that expire now or later, statics, and deletions of each kind; the marks' partitions too."""
    for number in range(count):
        p, c = chance.randrange(KEYS), chance.randrange(20)
        ttl = chance.choice(("", "", "", f" USING TTL {SHORT_TTL}", " USING TTL 7200"))
        values = f"({p}, {c}, 'v{number}', {number}, [{number}, 1])"
        yield chance.choices(
            (
                f"INSERT INTO $t (p, c, v, n, l) VALUES {values}{ttl}",
                f"UPDATE $t{ttl} SET n = {number} WHERE p = {p} AND c = {c}",
                f"UPDATE $t{ttl} SET s = 's{number}' WHERE p = {p}",
                f"DELETE FROM $t WHERE p = {p} AND c = {c}",
                f"DELETE FROM $t WHERE p = {p} AND c > {c} AND c < {c + 3}",
                f"DELETE FROM $t WHERE p = {p}",
                f"DELETE s FROM $t WHERE p = {p}",
            ),
            (70, 12, 6, 6, 3, 1, 2),
        )[0]


def test_a_lost_table_starts_over(stack: Stack, client: CqlClient) -> None:
    [node] = stack.cassandra.cdc_nodes
    chance = random.Random(11)
    client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {REPLICATION}")
    t = Table(client, stack.servers, NAME)
    t.run(f"CREATE TABLE $t ({COLUMNS}) WITH cdc = true", *statements(chance, ROWS))
    t.settle()
    node.nodetool("rebuild", "--keyspace", KEYSPACE, "--", MAIN)  # as a datacenter that has been filled once
    stack.materializer.stop()
    t.run(*statements(chance, ROWS // 10))
    lose_state(stack)
    survey = materializer(stack, "rebuild", f"{KEYSPACE}.{NAME}")
    assert "Nothing was done" in survey
    done = materializer(stack, "rebuild", f"{KEYSPACE}.{NAME}", "--yes")
    assert f"DELETE FROM system.available_ranges_v2 WHERE keyspace_name = '{KEYSPACE}'" in done
    with pytest.raises(CdcError, match=REFUSED):  # why the next statement is there
        node.nodetool("rebuild", "--keyspace", KEYSPACE, "--", MAIN)
    client.execute(f"DELETE FROM system.available_ranges_v2 WHERE keyspace_name = '{KEYSPACE}'")
    filling = threading.Thread(target=node.nodetool, args=("rebuild", "--keyspace", KEYSPACE, "--", MAIN))
    filling.start()
    t.run(*statements(chance, ROWS // 10))  # none is refused
    filling.join()
    stack.materializer.start()
    time.sleep(SHORT_TTL + 1)  # nothing expires while it is compared
    t.settle()
    t.close()
    check(client, t)
    check_shown(stack, client)
    stack.check()


def lose_state(stack: Stack) -> None:
    """All that is stored of one raw partition, here and in the checkpoint location."""
    settings, topic = stack.materializer.settings, f"{stack.servers.topic_prefix}.raw.{KEYSPACE}.{NAME}"
    names = ("checkpoint_location", "state_directory")
    homes = [Path(urlsplit(str(settings[f"materializer.{name}"])).path) for name in names]
    found = [path for home in homes for path in home.glob(f"*/{topic}-1")]
    assert len(found) == len(homes)
    for path in found:
        shutil.rmtree(path)


def check(client: CqlClient, t: Table) -> None:
    """Chains hold in both lives of each row, and the latest of each key is what SELECT shows."""
    history = History()
    history.add(t.changes)
    ended = 0
    for (_, key), changes in history.changes.items():
        lives = [list(life) for _, life in groupby(changes, is_anew)]
        assert len(lives) <= 2, key
        assert [problem for life in lives for problem in chain_problems(life)] == [], key
        ended += sum(source_of(change)["cause"] == CAUSE for change in changes)
        if len(lives) == 2:  # it was gone when it began again
            last = lives[0][-1].value
            assert last is not None
            assert last["after"] is None, key
    result = compare(client, history, [(KEYSPACE, NAME)])
    assert result.differences == []
    assert result.tables[f"{KEYSPACE}.{NAME}"] > ROWS // 4
    assert ended > ROWS // 4


def check_shown(stack: Stack, client: CqlClient) -> None:
    """`state show` prints the rows of a Cassandra partition that SELECT shows."""
    [(p, *_), *_] = client.execute(f"SELECT p, c, v FROM {KEYSPACE}.{NAME} LIMIT 1")
    selected = {c: v for c, v in client.execute(f"SELECT c, v FROM {KEYSPACE}.{NAME} WHERE p = {p}") if v is not None}
    shown = json.loads(materializer(stack, "state", "show", f"{KEYSPACE}.{NAME}", str(p), "--values"))
    values = {row["clustering"]["c"]: str(row["columns"]) for row in shown["rows"] if "columns" in row}
    assert shown["partition_key"] == {"p": p}
    assert [c for c, v in selected.items() if v not in values.get(c, "")] == []


def is_anew(change: Change) -> bool:
    """Whether it is of the row's life after `rebuild`, by its number."""
    return int(source_of(change)["row_sequence"]) > BEGUN_US


def source_of(change: Change) -> Record:
    assert change.value is not None
    source: Record = change.value["source"]
    return source
