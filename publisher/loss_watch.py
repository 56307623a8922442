"""Looks at what would lose changes: as a command, before the publisher starts, and once a minute while it runs."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import structlog

from cdc_messages.topics import raw_topic, tables_topic
from cdc_program.cassandra import connect, live_settings, peer_datacenters, read_node
from cdc_program.errors import CdcError, Code
from publisher.kafka import Topics
from publisher.loss_rules import Facts, Finding, Keyspace, Status, judge, losses
from publisher.selection import selection_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdc_program.cassandra import CassandraClient, Node
    from cdc_program.settings import PublisherSettings, Settings

log = structlog.get_logger(__name__)


def check(settings: Settings, say: Callable[[str], None]) -> None:
    """Say each finding, a line; CdcError CHANGES_WOULD_BE_LOST if one of them fails and is not accepted."""
    own = settings.publisher
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        tables = tables_with_cdc(client, settings)
        published = [table for table in tables if selection_of(own).takes(*table)]
        findings = judge(gather(client, read_node(client), settings, tables, _kafka_problems(settings, published)))
    width = max(len(finding.check) for finding in findings)
    for check_name, status, says, fix in findings:
        accepted = " (accepted)" if status is Status.FAIL and check_name in own.accept_loss else ""
        say(f"{status.value:<4}  {check_name:<{width}}  {says}{accepted}{' Fix: ' + fix if fix else ''}")
    require(findings, own)


def require(findings: Sequence[Finding], settings: PublisherSettings) -> None:
    """CdcError CHANGES_WOULD_BE_LOST with the first of what must not be started with."""
    failed = losses(findings, settings.accept_loss)
    if failed:
        more = f" {len(failed) - 1} more: see cassandra-publisher check." if len(failed) > 1 else ""
        raise CdcError(Code.CHANGES_WOULD_BE_LOST, f"{failed[0].says}{more}", failed[0].fix)


class Watch:
    """Says what begins to fail while the publisher runs, once, and when it is well again. `node` and its live settings
    `told` (see live_settings) are as of the last look: a node may come back upgraded, or with other settings.
    """

    def __init__(self, client: CassandraClient, node: Node, settings: Settings) -> None:
        self.node = node
        self.told: Mapping[str, str] | None = None
        self._client = client
        self._all_settings = settings
        self._settings = settings.publisher
        self._failing: set[Finding] = set()

    @property
    def losing(self) -> tuple[str, ...]:
        """What loses changes now."""
        return tuple(sorted(finding.says for finding in self._failing))

    def start(self) -> None:
        """CdcError CHANGES_WOULD_BE_LOST."""
        findings = self._findings()
        require(findings, self._settings)
        for finding in findings:
            if finding.status is not Status.OK:
                log.warning("preflight", check=finding.check, problem=finding.says, fix=finding.fix)

    def look(self) -> None:
        """A node that does not answer now is looked at the next time."""
        try:
            failing = set(losses(self._findings(), self._settings.accept_loss))
        except CdcError as error:
            if error.code is not Code.CASSANDRA_UNREACHABLE:
                raise
            return
        for finding in sorted(failing - self._failing, key=str):
            log.error("changes are lost", code=Code.CHANGES_WOULD_BE_LOST.text, problem=finding.says, fix=finding.fix)
        for finding in sorted(self._failing - failing, key=str):
            log.info("mended", check=finding.check)
        self._failing = failing

    def _findings(self) -> list[Finding]:
        node, tables = read_node(self._client), tables_with_cdc(self._client, self._all_settings)
        facts = gather(self._client, node, self._all_settings, tables, ())
        self.node, self.told = node, facts.settings
        return judge(facts)


def gather(
    client: CassandraClient,
    node: Node,
    settings: Settings,
    tables: Sequence[tuple[str, str]],
    kafka: Sequence[str],
) -> Facts:
    """`tables`: those with `cdc = true`; `kafka`: see Facts. CdcError CASSANDRA_UNREACHABLE, _AUTH or _QUERY."""
    folder = settings.node.cdc_raw_directory
    is_ours = folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    selection = selection_of(settings.publisher)
    disk = shutil.disk_usage(folder) if is_ours else None
    return Facts(
        release=node.release,
        datacenter=node.datacenter,
        datacenters=len({node.datacenter, *peer_datacenters(client)}),
        settings=live_settings(client),
        keyspaces=_keyspaces(client, [table for table in tables if selection.takes(*table)]),
        cdc_raw=str(folder),
        free_percent=disk.free * 100 // disk.total if disk else 0,
        is_cdc_raw_ours=is_ours,
        kafka=kafka,
        left_out=[".".join(table) for table in tables if not selection.takes(*table)],
        idle_patterns=list(selection.idle(tables)),
    )


def tables_with_cdc(client: CassandraClient, settings: Settings) -> list[tuple[str, str]]:
    """(keyspace, table) of each with `cdc = true` but the filler's."""
    filler = settings.filler.keyspace, settings.filler.table
    rows = client.rows("SELECT keyspace_name, table_name, cdc FROM system_schema.tables")
    return sorted({(row["keyspace_name"], row["table_name"]) for row in rows if row["cdc"]} - {filler})


def _keyspaces(client: CassandraClient, tables: Iterable[tuple[str, str]]) -> list[Keyspace]:
    by_keyspace: dict[str, list[str]] = {}
    for keyspace, table in tables:
        by_keyspace.setdefault(keyspace, []).append(table)
    rows = client.rows("SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces")
    return [
        Keyspace(name, by_keyspace[name], row["durable_writes"], dict(row["replication"]))
        for row in sorted(rows, key=lambda row: str(row["keyspace_name"]))
        if (name := row["keyspace_name"]) in by_keyspace
    ]


def _kafka_problems(settings: Settings, tables: Iterable[tuple[str, str]]) -> list[str]:
    prefix = settings.kafka.topic_prefix
    topics = Topics(settings.kafka)
    try:
        topics.check_reachable()
        return topics.missing_rights([tables_topic(prefix), *(raw_topic(prefix, *table) for table in tables)])
    except CdcError as error:
        return [error.problem]
