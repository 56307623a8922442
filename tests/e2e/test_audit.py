"""The audit finds each planted difference and nothing else, while clients write and the job runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.model.push import BY_FILLER, SEGMENT_MIB
from tests.support.e2e.audit_command import audit
from tests.support.e2e.audited_table import NAME, PLANTED, causes, loaded, plant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Setting

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

FLAGS = ("--log-delay-seconds", "10")  # the nodes sync ten times a second, but this machine may be busy
SETTINGS: Mapping[str, Setting] = {"publisher.heartbeat_seconds": 2, "materializer.stalled_publisher_seconds": 20}


@pytest.mark.exhaustive
def test_planted_differences_and_nothing_else(stack: Stack, client: CqlClient) -> None:
    repair_planted(stack, client)


@pytest.mark.exhaustive
@pytest.mark.timeout(2000)
@pytest.mark.parametrize("version", ["5.0", "4.1", "4.0", "3.11"])
def test_a_second_audit_is_clean(version: str) -> None:
    """Those before 5.0 cannot tell the write times of collections. 3.11 hands its log over in whole segments, up
    to half a minute late: a row that is written more often than that looks different each time, and is not audited.
    """
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS)
    settings, flags, at_once = SETTINGS, list(FLAGS), 20
    if version == "3.11":
        options = replace(options, commitlog_segment_mib=SEGMENT_MIB)
        settings, flags, at_once = {**SETTINGS, **BY_FILLER}, [], 1
    with (
        Stack(version=version, options=options, settings=settings) as stack,
        cql.connect(stack.servers.cassandra_hosts, stack.servers.cassandra_port) as client,
    ):
        repair_planted(stack, client, flags, checks_again=True, statements_at_once=at_once)


def repair_planted(
    stack: Stack,
    client: CqlClient,
    flags: Sequence[str] = FLAGS,
    *,
    checks_again: bool = False,
    statements_at_once: int = 20,
) -> None:
    with loaded(client, statements_at_once=statements_at_once) as load:
        plant(stack, client)
        written = load.count
        audited = audit(stack, NAME, "--slices", "2", "--repair", *flags)
        assert load.count > written + 100
        if checks_again:
            again = audit(stack, NAME, "--slices", "1", *flags)
            assert (again.status, again.of("difference"), again.of("not_audited")) == (0, [], []), again.progress
    assert audited.of("not_audited") == [], audited.progress
    assert not any(noise in audited.progress for noise in ("incubator", "log level")), audited.progress  # Spark's own
    assert causes(audited) == PLANTED
    assert audited.status == 1
    [summary] = audited.of("summary")
    assert summary["rows"] > 300
    assert {repair["key"]["p"]: repair["replaced"] for repair in audited.of("repair")} == {1: True, 2: True, 3: True}
    assert not list(Path(str(stack.materializer.settings["materializer.state_directory"])).glob("*.audit"))
