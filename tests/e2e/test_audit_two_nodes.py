"""An audit repairs partitions on two nodes: whose replicas differ, and while something is killed or away."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from tests.support.e2e.audit_command import RunningAudit, audit
from tests.support.e2e.audited_table import NAME, PLANTED, PLANTED_AGAIN, causes, loaded, plant
from tests.support.e2e.replicas import TWICE, cut_off

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting
    from tests.support.e2e.audit_command import Audited

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200), pytest.mark.exhaustive]

SETTINGS: dict[str, Setting] = {"publisher.heartbeat_seconds": 2, "materializer.stalled_publisher_seconds": 20}
FLAGS = ("--consistency", "ALL", "--log-delay-seconds", "10")
ASKED_SECONDS = 400.0
GIVE_UP_SECONDS = 40
AWAY_SECONDS = 5.0


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Stack, CqlClient]]:
    """Clients write all the time. No read repairs replicas that differ, so that each one's image is another one."""
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    with (
        Stack(datacenters={CDC_DATACENTER: 2}, options=options, settings=SETTINGS) as stack,
        cql.connect(stack.servers.cassandra_hosts[:1], stack.servers.cassandra_port) as client,
        loaded(client, TWICE, "AND read_repair = 'NONE'", lambda: miss_writes(stack, client)),
    ):
        yield stack, client


def miss_writes(stack: Stack, client: CqlClient) -> None:
    """The second node misses a row of each partition that is repaired, and the deletion of another one."""
    first, second = stack.cassandra.nodes
    for p in (1, 2, 3):
        client.execute(f"INSERT INTO {NAME} (p, c, v) VALUES ({p}, 300, 'on both, then deleted')")
    with cut_off(second, first):
        for p in (1, 2, 3):
            client.execute(f"INSERT INTO {NAME} (p, c, v) VALUES ({p}, 301, 'on one node')")
            client.execute(f"DELETE FROM {NAME} WHERE p = {p} AND c = 300")


def requests(client: CqlClient) -> set[UUID]:
    """The repairs that audits have asked for."""
    rows = client.execute("SELECT snapshot, portion FROM cdc_filler.snapshots")
    return {row["snapshot"] for row in rows if row["portion"].startswith("repair:")}


def start_repair(stack: Stack, client: CqlClient, *flags: str) -> RunningAudit:
    """An audit that has just asked the publishers for a repair."""
    before = requests(client)
    running = RunningAudit(stack, NAME, *FLAGS, "--repair", *flags)
    deadline = time.monotonic() + ASKED_SECONDS
    while requests(client) == before:
        assert time.monotonic() < deadline, running.wait()
        time.sleep(0.1)
    return running


def await_ends(client: CqlClient, repair: UUID) -> None:
    """Wait until each node has sent its part."""
    query = f"SELECT state FROM cdc_filler.snapshots WHERE snapshot = {repair}"
    deadline = time.monotonic() + ASKED_SECONDS
    while sum(row["state"] == "ended" for row in client.execute(query)) < 2:
        assert time.monotonic() < deadline
        time.sleep(1)


def replaced(audited: Audited) -> dict[int, bool]:
    return {repair["key"]["p"]: repair["replaced"] for repair in audited.of("repair")}


def check_clean(stack: Stack) -> None:
    again = audit(stack, NAME, *FLAGS)
    assert (again.status, again.of("difference"), again.of("not_audited")) == (0, [], []), again.progress


def test_replicas_that_differ(pair: tuple[Stack, CqlClient]) -> None:
    stack, client = pair
    plant(stack, client)
    audited = audit(stack, NAME, *FLAGS, "--repair")
    assert causes(audited) == PLANTED
    assert replaced(audited) == {1: True, 2: True, 3: True}
    check_clean(stack)


def test_an_audit_that_is_killed_has_its_repair_done(pair: tuple[Stack, CqlClient]) -> None:
    """The publishers and the job do the rest. The same command continues where it was killed, and asks once more."""
    stack, client = pair
    plant(stack, client)
    before = requests(client)
    start_repair(stack, client).kill()
    [repair] = requests(client) - before
    await_ends(client, repair)
    continued = audit(stack, NAME, *FLAGS, "--repair")
    assert (continued.status, continued.of("difference")) == (1, [])
    assert set(replaced(continued).values()) == {True}, continued.progress
    check_clean(stack)


def test_the_job_is_killed_during_a_repair(pair: tuple[Stack, CqlClient]) -> None:
    stack, client = pair
    plant(stack, client)
    running = start_repair(stack, client)
    stack.materializer.kill()
    time.sleep(AWAY_SECONDS)
    stack.materializer.start()
    audited = running.wait()
    assert PLANTED_AGAIN.items() <= causes(audited).items() <= PLANTED.items()
    assert set(replaced(audited).values()) == {True}, audited.progress
    check_clean(stack)


def test_a_node_that_is_away_makes_a_repair_change_nothing(pair: tuple[Stack, CqlClient]) -> None:
    """Its publisher is killed with it. Once both are back, the next audit repairs."""
    stack, client = pair
    _, second = stack.cassandra.nodes
    [row] = client.execute(f"SELECT host_id FROM system.peers WHERE peer = '{second.address}'")
    plant(stack, client)
    running = start_repair(stack, client, "--repair-seconds", str(GIVE_UP_SECONDS))
    stack.publishers[1].kill()
    second.stop()
    audited = running.wait()
    found = causes(audited)
    assert set(replaced(audited).values()) == {False}
    assert str(row["host_id"]) in audited.progress
    second.start()
    stack.publishers[1].start()
    repaired = audit(stack, NAME, *FLAGS, "--repair")
    assert causes(repaired) == found
    assert set(replaced(repaired).values()) == {True}, repaired.progress
    check_clean(stack)
