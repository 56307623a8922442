"""What about a node, its keyspaces and Kafka would lose changes or is worth a word: judged from facts. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_SYNC_MS = 10_000  # Cassandra's default
_LEAST_FREE_PERCENT = 20
_SYNC_PERIOD = ("commitlog_sync_period", "commitlog_sync_period_in_ms")


class Status(Enum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """`check` is the name by which a loss is accepted (`publisher.accept_loss`); `fix` is empty where all is well."""

    check: str
    status: Status
    says: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Keyspace:
    """A keyspace with published tables. `replication`: the options of its strategy, `class` among them."""

    name: str
    tables: Sequence[str]
    durable_writes: bool
    replication: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found. `settings`: the node's live ones by name, None if it does not tell them (3.11, or no grant);
    `free_percent` of the disk of `cdc_raw`; `kafka`: what is wrong with it, one line each; `left_out`:
    tables with `cdc = true` that the settings leave out; `idle_patterns`: those of the settings' that fit no table.
    """

    release: str
    datacenter: str
    datacenters: int
    settings: Mapping[str, str] | None
    keyspaces: Sequence[Keyspace]
    cdc_raw: str
    free_percent: int
    is_cdc_raw_ours: bool
    kafka: Sequence[str]
    left_out: Sequence[str] = ()
    idle_patterns: Sequence[str] = ()


def judge(facts: Facts) -> list[Finding]:
    """Every check, in the order in which a person would mend what fails."""
    return [finding for check in _CHECKS for finding in check(facts)]


def losses(findings: Sequence[Finding], accepted: Sequence[str]) -> list[Finding]:
    """What must not be started with."""
    return [finding for finding in findings if finding.status is Status.FAIL and finding.check not in accepted]


def _cdc_enabled(facts: Facts) -> Iterator[Finding]:
    if facts.settings is None:
        yield Finding(
            "cdc_enabled",
            Status.WARN,
            f"Cassandra {facts.release} does not tell its settings: whether it keeps a CDC log cannot be seen.",
            "See that its cassandra.yaml has cdc_enabled: true; from 4.0 on grant SELECT on system_views.",
        )
    elif facts.settings.get("cdc_enabled") == "true":
        yield Finding("cdc_enabled", Status.OK, "The node keeps a CDC log.")
    else:
        fix = "Set cdc_enabled: true in its cassandra.yaml and restart the node."
        yield Finding("cdc_enabled", Status.FAIL, "The node runs with cdc_enabled: false.", fix)


def _cdc_block_writes(facts: Facts) -> Iterator[Finding]:
    lost = "With cdc_block_writes: false the node drops the oldest segments when cdc_raw is full."
    yield from _switch(facts, "cdc_block_writes", lost, "The node refuses CDC writes rather than lose changes.")


def _cdc_on_repair(facts: Facts) -> Iterator[Finding]:
    lost = "With cdc_on_repair_enabled: false what repair brings this node does not pass its commit log: it is lost."
    yield from _switch(facts, "cdc_on_repair_enabled", lost, "What repair brings passes the commit log.")


def _switch(facts: Facts, name: str, lost: str, well: str) -> Iterator[Finding]:
    """A setting of 4.1 and later that must be true."""
    value = (facts.settings or {}).get(name)
    if value == "false":
        yield Finding(name, Status.FAIL, lost, f"Set {name}: true in cassandra.yaml and restart the node.")
    elif value is not None:
        yield Finding(name, Status.OK, well)


def _commitlog_sync(facts: Facts) -> Iterator[Finding]:
    settings = facts.settings or {}
    period = next((digits for name in _SYNC_PERIOD if (digits := _milliseconds(settings.get(name)))), 0)
    if settings.get("commitlog_sync") == "periodic" and period > _MOST_SYNC_MS:
        yield Finding(
            "commitlog_sync",
            Status.WARN,
            f"The node syncs its commit log every {period} ms: a change is seen that late.",
            "Set commitlog_sync_period to 10 s or less.",
        )
    elif period:
        yield Finding("commitlog_sync", Status.OK, f"The node syncs its commit log every {period} ms.")


def _milliseconds(value: str | None) -> int:
    """`10000ms`, `10s` or, of 4.0, `10000`; 0 where there is none."""
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
                Status.FAIL,
                f"The keyspace {keyspace.name} has durable_writes = false: its writes do not pass the"
                f" commit log. It has the tables {', '.join(keyspace.tables)} with cdc = true.",
                f"ALTER KEYSPACE {keyspace.name} WITH durable_writes = true.",
            )


def _replication(facts: Facts) -> Iterator[Finding]:
    for keyspace in facts.keyspaces:
        yield _replicated(keyspace, facts)


def _replicated(keyspace: Keyspace, facts: Facts) -> Finding:
    strategy = keyspace.replication.get("class", "").rpartition(".")[2]
    here = keyspace.replication.get(facts.datacenter, "0").partition("/")[0]
    fix = f"ALTER KEYSPACE {keyspace.name} so that {facts.datacenter} has replicas, then nodetool rebuild."
    if strategy == "NetworkTopologyStrategy" and here == "0":
        said = f"The keyspace {keyspace.name} has no replicas in {facts.datacenter}: its changes do not come here."
        return Finding("replication", Status.FAIL, said, fix)
    if strategy != "NetworkTopologyStrategy" and facts.datacenters > 1:
        said = f"The keyspace {keyspace.name} has {strategy}: which rows come to {facts.datacenter} is chance."
        return Finding("replication", Status.FAIL, said, fix.replace("so that", "to NetworkTopologyStrategy, so that"))
    where = f"in {facts.datacenter}"
    where = f"in {facts.datacenter}"
    count = here if strategy == "NetworkTopologyStrategy" else keyspace.replication.get("replication_factor", "?")
    if count == "1":
        said = f"The keyspace {keyspace.name} has one replica {where}: while its node is down, changes wait."
        return Finding("replication", Status.WARN, said, "With two, changes flow on through the loss of a node.")
    return Finding("replication", Status.OK, f"The keyspace {keyspace.name} has {count} replicas {where}.")


def _files(facts: Facts) -> Iterator[Finding]:
    if not facts.is_cdc_raw_ours:
        yield Finding(
            "cdc_raw",
            Status.FAIL,
            f"{facts.cdc_raw} is not a directory that this user may read and delete in.",
            "Set node.cdc_raw_directory to the node's, and put the publisher's user into Cassandra's group.",
        )
    elif facts.free_percent < _LEAST_FREE_PERCENT:
        yield Finding(
            "disk",
            Status.WARN,
            f"{facts.free_percent} % of the disk of {facts.cdc_raw} is free.",
            "Make room: Cassandra and its CDC log share it.",
        )
    else:
        yield Finding("disk", Status.OK, f"{facts.free_percent} % of the disk of {facts.cdc_raw} is free.")


def _tables(facts: Facts) -> Iterator[Finding]:
    count = sum(len(keyspace.tables) for keyspace in facts.keyspaces)
    left_out = f", and these are left out by the settings: {', '.join(facts.left_out)}" if facts.left_out else ""
    said = f"{count} tables with cdc = true are published{left_out}."
    if facts.left_out and not count:
        yield Finding("tables", Status.WARN, said, "See publisher.include_tables and exclude_tables.")
    else:
        yield Finding("tables", Status.OK, said)
    for pattern in facts.idle_patterns:
        said = f"{pattern}, in publisher.include_tables or exclude_tables, fits no table with cdc = true."
        yield Finding("tables", Status.WARN, said, "Spell it as Cassandra does, KEYSPACE.TABLE or KEYSPACE.*.")


def _kafka(facts: Facts) -> Iterator[Finding]:
    for problem in facts.kafka:
        yield Finding("kafka", Status.FAIL, problem, "See docs/security.md for what the publisher needs.")
    if not facts.kafka:
        yield Finding("kafka", Status.OK, "Kafka answers, and allows what the publisher does.")


_CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
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
