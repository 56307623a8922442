"""Addresses of the running stack, in `.run/servers.json`, or where CDC_SERVERS says, so that any client can join."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import run_folder


@dataclass(frozen=True, slots=True)
class NodeAddress:
    """One Cassandra node."""

    # Its IP address.
    address: str
    # The port for CQL.
    port: int
    # The name of its datacenter.
    datacenter: str
    # The path of its cdc_raw; None where CDC is off.
    cdc_raw: str | None


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers of a running stack."""

    # The release of Cassandra, such as `5.0.8`.
    cassandra: str
    # The addresses of the nodes with CDC.
    cassandra_hosts: tuple[str, ...]
    # The port of each node for CQL.
    cassandra_port: int
    # All nodes.
    nodes: tuple[NodeAddress, ...]
    # Kafka's bootstrap servers.
    kafka: str
    # The URL of the schema registry.
    registry: str
    # The prefix of all topics.
    topic_prefix: str
    # The id of the process that the stack ends with.
    pid: int

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        values = json.loads(text)
        values["nodes"] = tuple(NodeAddress(**node) for node in values["nodes"])
        values["cassandra_hosts"] = tuple(values["cassandra_hosts"])
        return cls(**values)

    def settings(self) -> dict[str, str]:
        """The settings (`table.key`) with which this project's programs join."""
        return {
            "cassandra.contact_points": ",".join(self.cassandra_hosts),
            "cassandra.port": str(self.cassandra_port),
            "kafka.bootstrap_servers": self.kafka,
            "kafka.topic_prefix": self.topic_prefix,
            "registry.url": self.registry,
        }


def servers_file() -> Path:
    """One for each stack: two on one machine (two tests at a time) give CDC_SERVERS each its own file."""
    given = os.environ.get("CDC_SERVERS")
    return Path(given) if given else run_folder() / "servers.json"


def tables_file() -> Path:
    """The file of DuckDB with the tables of the running stack."""
    return servers_file().with_suffix(".duckdb")


def write_servers(servers: Servers) -> Path:
    """Returns the file."""
    return replace_file(servers_file(), servers.to_json())


def replace_file(path: Path, text: str) -> Path:
    """Put the text there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text)
    return fresh.replace(path)


def read_servers() -> Servers:
    """The addresses of the stack that runs. Raises CdcError(STACK_MISSING) when none does."""
    try:
        servers = Servers.from_json(servers_file().read_text())
        os.kill(servers.pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        raise CdcError(
            Code.STACK_MISSING, "No stack is running.", "Start one in another terminal: make stack"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise CdcError(
            Code.STACK_MISSING, f"{servers_file()} cannot be read: {error}.", "Remove it and run: make stack"
        ) from error
    return servers


def refuse_second() -> None:
    """Raises CdcError(SERVER_FAILED) if a stack runs whose addresses a new one would replace."""
    try:
        running = read_servers().pid
    except CdcError:
        return
    if running != os.getpid():
        problem = f"A stack of this folder is running already (process {running})."
        raise CdcError(Code.SERVER_FAILED, problem, "Use it, or end it: Ctrl-C in its terminal.")


def remove_servers() -> None:
    """Take away the addresses, if they are this process's."""
    with suppress(CdcError):
        if read_servers().pid == os.getpid():
            servers_file().unlink(missing_ok=True)
