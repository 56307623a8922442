"""Rules that find settings of a node, its keyspaces and Kafka that lose changes or need attention. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_SYNC_MS = 10_000  # Cassandra's default
_LEAST_FREE_PERCENT = 20
OF_KEYSPACES = frozenset({"durable_writes", "replication"})
"""Checks that concern single keyspaces."""
_SYNC_PERIOD = ("commitlog_sync_period", "commitlog_sync_period_in_ms")


class Severity(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """The result of one check."""

    # the name that `publisher.accept_loss` accepts
    check: str
    # How bad it is.
    severity: Severity
    # What was found, and what to do.
    message: str
    # empty if the severity is OK
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Keyspace:
    """A keyspace with published tables."""

    # Its name.
    name: str
    # The names of its published tables.
    tables: Sequence[str]
    # Whether its writes go through the commit log.
    durable_writes: bool
    # The options of its replication strategy, including `class`.
    replication: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that the rules judge."""

    # Cassandra's release.
    release: str
    # The node's datacenter.
    datacenter: str
    # The number of datacenters.
    datacenters: int
    # the node's, by name; None if it does not report them (3.11, or no grant)
    live_settings: Mapping[str, str] | None
    # The keyspaces with published tables.
    keyspaces: Sequence[Keyspace]
    # the folder of CDC segments
    cdc_raw: str
    # of the disk of `cdc_raw`
    free_percent: int
    # Whether the publisher can read and delete files in cdc_raw.
    is_cdc_raw_usable: bool
    # one line each
    kafka_problems: Sequence[str]
    # tables with `cdc = true` that the settings exclude
    excluded_tables: Sequence[str] = ()
    # patterns in the settings that match no table
    unmatched_patterns: Sequence[str] = ()
    # why tables with `cdc = true` cannot be published, by name
    refusals: Mapping[str, str] = field(default_factory=dict)


def apply_rules(facts: Facts) -> list[Finding]:
    """The findings of all rules, in the order in which an operator would fix them."""
    return [finding for rule in _RULES for finding in rule(facts)]


def unaccepted_losses(findings: Sequence[Finding], accepted: Sequence[str]) -> list[Finding]:
    """The findings that forbid to start."""
    return [finding for finding in findings if finding.severity is Severity.FAIL and finding.check not in accepted]


def _cdc_enabled(facts: Facts) -> Iterator[Finding]:
    if facts.live_settings is None:
        yield Finding(
            "cdc_enabled",
            Severity.WARN,
            f"Cassandra {facts.release} does not report its settings: it is unknown whether the node keeps a CDC log.",
            "Check that its cassandra.yaml has cdc_enabled: true. From 4.0 on, grant SELECT on system_views.",
        )
    elif facts.live_settings.get("cdc_enabled") == "true":
        yield Finding("cdc_enabled", Severity.OK, "The node keeps a CDC log.")
    else:
        fix = "Set cdc_enabled: true in its cassandra.yaml and restart the node."
        yield Finding("cdc_enabled", Severity.FAIL, "The node runs with cdc_enabled: false.", fix)


def _cdc_block_writes(facts: Facts) -> Iterator[Finding]:
    lost = "With cdc_block_writes: false the node drops the oldest segments when cdc_raw is full."
    yield from _switch(
        facts, "cdc_block_writes", lost, "When cdc_raw is full, the node refuses CDC writes and loses no changes."
    )


def _cdc_on_repair(facts: Facts) -> Iterator[Finding]:
    lost = "With cdc_on_repair_enabled: false repaired data bypasses the commit log: its changes are lost."
    yield from _switch(facts, "cdc_on_repair_enabled", lost, "Repaired data passes through the commit log.")


def _switch(facts: Facts, name: str, if_false: str, if_true: str) -> Iterator[Finding]:
    """A setting of 4.1 and later that must be true."""
    value = (facts.live_settings or {}).get(name)
    if value == "false":
        yield Finding(name, Severity.FAIL, if_false, f"Set {name}: true in cassandra.yaml and restart the node.")
    elif value is not None:
        yield Finding(name, Severity.OK, if_true)


def _commitlog_sync(facts: Facts) -> Iterator[Finding]:
    settings = facts.live_settings or {}
    period = sync_period_ms(settings)
    if settings.get("commitlog_sync") == "periodic" and period > _MOST_SYNC_MS:
        yield Finding(
            "commitlog_sync",
            Severity.WARN,
            f"The node syncs its commit log every {period} ms: changes are delayed by up to this time.",
            "Set commitlog_sync_period to 10 s or less.",
        )
    elif period:
        yield Finding("commitlog_sync", Severity.OK, f"The node syncs its commit log every {period} ms.")


def sync_period_ms(settings: Mapping[str, str]) -> int:
    """Return the period in ms at which a node with these live settings syncs its commit log; 0 if it does not report
    it.
    """
    return next((found for name in _SYNC_PERIOD if (found := _milliseconds(settings.get(name)))), 0)


def _milliseconds(value: str | None) -> int:
    """Return the ms of `10000ms`, `10s`, or for 4.0 `10000`; 0 if the setting is missing."""
    if not value:
        return 0
    digits = value.rstrip("ms")
    if not digits.isdigit():
        return 0
    return int(digits) * (1000 if value.endswith("s") and not value.endswith("ms") else 1)


def _durable_writes(facts: Facts) -> Iterator[Finding]:
    for keyspace in facts.keyspaces:
        if not keyspace.durable_writes:
            yield Finding(
                "durable_writes",
                Severity.FAIL,
                f"The keyspace {keyspace.name} has durable_writes = false: its writes bypass the"
                f" commit log. Its tables with cdc = true: {', '.join(keyspace.tables)}.",
                f"ALTER KEYSPACE {keyspace.name} WITH durable_writes = true.",
            )


def _replication(facts: Facts) -> Iterator[Finding]:
    for keyspace in facts.keyspaces:
        yield _check_replication(keyspace, facts)


def _check_replication(keyspace: Keyspace, facts: Facts) -> Finding:
    strategy = keyspace.replication.get("class", "").rpartition(".")[2]
    replicas = keyspace.replication.get(facts.datacenter, "0").partition("/")[0]
    fix = f"ALTER KEYSPACE {keyspace.name} so that {facts.datacenter} has replicas, then nodetool rebuild."
    if strategy == "NetworkTopologyStrategy" and replicas == "0":
        message = f"The keyspace {keyspace.name} has no replicas in {facts.datacenter}: its changes do not arrive here."
        return Finding("replication", Severity.FAIL, message, fix)
    if strategy != "NetworkTopologyStrategy" and facts.datacenters > 1:
        message = f"The keyspace {keyspace.name} has {strategy}: only some rows have a replica in {facts.datacenter}."
        return Finding(
            "replication", Severity.FAIL, message, fix.replace("so that", "to NetworkTopologyStrategy, so that")
        )
    where = f"in {facts.datacenter}"
    count = replicas if strategy == "NetworkTopologyStrategy" else keyspace.replication.get("replication_factor", "?")
    if count == "1":
        message = f"The keyspace {keyspace.name} has one replica {where}: while its node is down, its changes wait."
        return Finding("replication", Severity.WARN, message, "With two replicas, changes arrive while a node is down.")
    return Finding("replication", Severity.OK, f"The keyspace {keyspace.name} has {count} replicas {where}.")


def _files(facts: Facts) -> Iterator[Finding]:
    if not facts.is_cdc_raw_usable:
        yield Finding(
            "cdc_raw",
            Severity.FAIL,
            f"{facts.cdc_raw} is not a directory that this user may read and delete in.",
            "Set node.cdc_raw_directory to the node's, and add the publisher's user to Cassandra's group.",
        )
    elif facts.free_percent < _LEAST_FREE_PERCENT:
        yield Finding(
            "disk",
            Severity.WARN,
            f"{facts.free_percent} % of the disk of {facts.cdc_raw} is free.",
            "Free disk space: Cassandra and its CDC log share the disk.",
        )
    else:
        yield Finding("disk", Severity.OK, f"{facts.free_percent} % of the disk of {facts.cdc_raw} is free.")


def _tables(facts: Facts) -> Iterator[Finding]:
    names = {f"{keyspace.name}.{table}" for keyspace in facts.keyspaces for table in keyspace.tables}
    count = len(names - facts.refusals.keys())
    excluded = f"; excluded by the settings: {', '.join(facts.excluded_tables)}" if facts.excluded_tables else ""
    message = f"{count} tables with cdc = true are published{excluded}."
    if facts.excluded_tables and not count:
        yield Finding("tables", Severity.WARN, message, "Check publisher.include_tables and exclude_tables.")
    else:
        yield Finding("tables", Severity.OK, message)
    for table, reason in facts.refusals.items():
        fix = "Its changes are not published: ALTER it WITH cdc = false, which spares cdc_raw what is not used."
        yield Finding("tables", Severity.WARN, f"{table} cannot be published. {reason}", fix)
    for pattern in facts.unmatched_patterns:
        message = f"{pattern}, in publisher.include_tables or exclude_tables, matches no table with cdc = true."
        yield Finding("tables", Severity.WARN, message, "Spell it as in Cassandra, KEYSPACE.TABLE or KEYSPACE.*.")


def _kafka(facts: Facts) -> Iterator[Finding]:
    for problem in facts.kafka_problems:
        yield Finding(
            "kafka", Severity.FAIL, problem, "See docs/guides/secure.md for the rights that the publisher needs."
        )
    if not facts.kafka_problems:
        yield Finding("kafka", Severity.OK, "Kafka answers, and grants the rights that the publisher needs.")


_RULES: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _cdc_enabled,
    _cdc_block_writes,
    _cdc_on_repair,
    _tables,
    _durable_writes,
    _replication,
    _commitlog_sync,
    _files,
    _kafka,
)
