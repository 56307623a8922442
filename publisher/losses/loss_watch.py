"""Checks for settings that lose changes: as a command, before the publisher starts, and once a minute while it runs."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from cdc_common.clients.cassandra import connect, live_settings, peer_datacenters, read_node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import raw_topic, tables_topic, watermarks_topic
from publisher.kafka.topic_admin import TopicAdmin
from publisher.losses.loss_rules import OF_KEYSPACES, Facts, Finding, Keyspace, Severity, apply_rules, unaccepted_losses
from publisher.tables.node_schema import NodeSchema
from publisher.tables.selection import selection_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdc_common.clients.cassandra import CassandraClient, Node
    from publisher.settings import PublisherSettings, Settings

log = structlog.get_logger(__name__)


def print_findings(settings: Settings, write_line: Callable[[str], None]) -> None:
    """Write a line for each finding; CdcError CHANGES_WOULD_BE_LOST if one fails and is not accepted."""
    own = settings.publisher
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        tables = tables_with_cdc(client, settings)
        published = [table for table in tables if selection_from(own).includes(*table)]
        kafka_problems = _find_kafka_problems(settings, published)
        facts = gather_facts(client, read_node(client), settings, tables, kafka_problems)
        findings = apply_rules(replace(facts, refusals=_find_refusals(client, settings)))
    width = max(len(finding.check) for finding in findings)
    for check, severity, message, fix in findings:
        accepted = " (accepted)" if severity is Severity.FAIL and check in own.accept_loss else ""
        write_line(f"{severity.value:<4}  {check:<{width}}  {message}{accepted}{' Fix: ' + fix if fix else ''}")
    require_no_losses(findings, own)


def require_no_losses(findings: Sequence[Finding], settings: PublisherSettings) -> None:
    """Raise CdcError CHANGES_WOULD_BE_LOST with the first finding that fails and is not accepted."""
    failed = unaccepted_losses(findings, settings.accept_loss)
    if failed:
        more = f" {len(failed) - 1} more: see cassandra-publisher check." if len(failed) > 1 else ""
        raise CdcError(Code.CHANGES_WOULD_BE_LOST, f"{failed[0].message}{more}", failed[0].fix)


class LossWatch:
    """Logs once when a check starts to fail while the publisher runs, and when it passes again. `node` and its
    `live_settings` are as of the last check: a node may be upgraded, or restart with other settings.
    """

    def __init__(self, client: CassandraClient, node: Node, settings: Settings) -> None:
        self.node = node
        self.live_settings: Mapping[str, str] | None = None
        self._client = client
        self._all_settings = settings
        self._settings = settings.publisher
        self._failing: set[Finding] = set()

    @property
    def current_losses(self) -> tuple[str, ...]:
        """Return the settings that lose changes now."""
        return tuple(sorted(finding.message for finding in self._failing))

    def check_at_start(self, *, is_first: bool) -> None:
        """Check the node at start. CdcError CHANGES_WOULD_BE_LOST for a setting of the node and, at the first start, of
        a keyspace. Later a keyspace stops no other one: `check_again` reports it.
        """
        findings = self._find()
        of_keyspaces = () if is_first else OF_KEYSPACES
        require_no_losses([finding for finding in findings if finding.check not in of_keyspaces], self._settings)
        for finding in findings:
            if finding.severity is not Severity.OK:
                log.warning("check at start", check=finding.check, problem=finding.message, fix=finding.fix)

    def check_again(self) -> None:
        """Log what has changed. If the node does not answer, the next call checks it."""
        try:
            failing = set(unaccepted_losses(self._find(), self._settings.accept_loss))
        except CdcError as error:
            if error.code is not Code.CASSANDRA_UNREACHABLE:
                raise
            return
        for finding in sorted(failing - self._failing, key=str):
            log.error(
                "changes are lost", code=Code.CHANGES_WOULD_BE_LOST.text, problem=finding.message, fix=finding.fix
            )
        for finding in sorted(self._failing - failing, key=str):
            log.info("changes are no longer lost", check=finding.check)
        self._failing = failing

    def _find(self) -> list[Finding]:
        node, tables = read_node(self._client), tables_with_cdc(self._client, self._all_settings)
        facts = gather_facts(self._client, node, self._all_settings, tables, ())
        self.node, self.live_settings = node, facts.live_settings
        return apply_rules(facts)


def gather_facts(
    client: CassandraClient,
    node: Node,
    settings: Settings,
    tables: Sequence[tuple[str, str]],
    kafka_problems: Sequence[str],
) -> Facts:
    """`tables`: those with `cdc = true`. CdcError CASSANDRA_UNREACHABLE, _AUTH or _QUERY."""
    folder = settings.node.cdc_raw_directory
    is_usable = folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)
    selection = selection_from(settings.publisher)
    disk = shutil.disk_usage(folder) if is_usable else None
    return Facts(
        release=node.release,
        datacenter=node.datacenter,
        datacenters=len({node.datacenter, *peer_datacenters(client)}),
        live_settings=live_settings(client),
        keyspaces=_read_keyspaces(client, [table for table in tables if selection.includes(*table)]),
        cdc_raw=str(folder),
        free_percent=disk.free * 100 // disk.total if disk else 0,
        is_cdc_raw_usable=is_usable,
        kafka_problems=kafka_problems,
        excluded_tables=[".".join(table) for table in tables if not selection.includes(*table)],
        unmatched_patterns=list(selection.unmatched_patterns(tables)),
    )


def tables_with_cdc(client: CassandraClient, settings: Settings) -> list[tuple[str, str]]:
    """(keyspace, table) of each table with `cdc = true`, except the filler's."""
    filler = settings.filler.keyspace, settings.filler.table
    rows = client.rows("SELECT keyspace_name, table_name, cdc FROM system_schema.tables")
    return sorted({(row["keyspace_name"], row["table_name"]) for row in rows if row["cdc"]} - {filler})


def _read_keyspaces(client: CassandraClient, tables: Iterable[tuple[str, str]]) -> list[Keyspace]:
    by_keyspace: dict[str, list[str]] = {}
    for keyspace, table in tables:
        by_keyspace.setdefault(keyspace, []).append(table)
    rows = client.rows("SELECT keyspace_name, durable_writes, replication FROM system_schema.keyspaces")
    return [
        Keyspace(name, by_keyspace[name], row["durable_writes"], dict(row["replication"]))
        for row in sorted(rows, key=lambda row: str(row["keyspace_name"]))
        if (name := row["keyspace_name"]) in by_keyspace
    ]


def _find_refusals(client: CassandraClient, settings: Settings) -> dict[str, str]:
    filler = settings.filler.keyspace, settings.filler.table
    with tempfile.TemporaryDirectory(prefix="cassandra-publisher-") as scratch:
        schema = NodeSchema(Path(scratch) / "schema.json", client.rows, filler, selection_from(settings.publisher))
        schema.refresh()
        return schema.refusals()


def _find_kafka_problems(settings: Settings, tables: Iterable[tuple[str, str]]) -> list[str]:
    prefix = settings.kafka.topic_prefix
    admin = TopicAdmin(settings.kafka)
    try:
        admin.check_reachable()
        return admin.find_missing_rights(
            [tables_topic(prefix), watermarks_topic(prefix), *(raw_topic(prefix, *table) for table in tables)]
        )
    except CdcError as error:
        return [error.problem]
