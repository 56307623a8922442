"""Servers as child processes, or in containers where SERVERS=containers says so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from dev.local_stack.servers.cassandra_options import CassandraOptions


def containers_are_chosen() -> bool:
    """Raises CdcError(STACK_MISSING) when SERVERS says neither `local` nor `containers`."""
    choice = os.environ.get("SERVERS", "local") or "local"
    if choice not in {"local", "containers"}:
        raise CdcError(Code.STACK_MISSING, f"SERVERS={choice} is not known.", "Take local or containers.")
    return choice == "containers"


def kafka_broker(
    *, settings: Mapping[str, str] | None = None, folder: Path | None = None, report: Callable[[str], None] = print
) -> KafkaBroker:
    """A broker, not started yet."""
    if containers_are_chosen():
        from dev.local_stack.servers.containers import ContainerKafka  # noqa: PLC0415 - testcontainers is an extra of its own

        return ContainerKafka(settings=settings, folder=folder, report=report)
    return KafkaBroker(settings=settings, folder=folder, report=report)


def cassandra_cluster(  # noqa: PLR0913 - settings by keyword, all with defaults
    version: str = "5.0",
    *,
    nodes: int = 1,
    datacenters: Mapping[str, int] | None = None,
    options: CassandraOptions | None = None,
    folder: Path | None = None,
    report: Callable[[str], None] = print,
) -> CassandraCluster:
    """A cluster, not started yet; see CassandraCluster."""
    if containers_are_chosen():
        from dev.local_stack.servers.containers import ContainerCassandra  # noqa: PLC0415 - as above

        return ContainerCassandra(
            version, nodes=nodes, datacenters=datacenters, options=options, folder=folder, report=report
        )
    return CassandraCluster(
        version, nodes=nodes, datacenters=datacenters, options=options, folder=folder, report=report
    )
