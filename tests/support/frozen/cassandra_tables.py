"""Frozen vectors of the filler's tables in Cassandra: CREATE TABLE IF NOT EXISTS leaves those of an older release."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from filler.keyspace import STRATEGY, create_keyspace
from filler.settings import FillerSettings
from tests.support.frozen.vectors import Format, Vector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.clients.cassandra import CassandraClient, Node

DATACENTER = "cdc"
CREATE = re.compile(r"CREATE TABLE IF NOT EXISTS (\S+) (.*?) AND comment = .*")


class _Client:
    """Answers as a node whose keyspace is there, and keeps the statements."""

    def __init__(self) -> None:
        self.statements: list[str] = []

    def rows(self, statement: str, _: object = ()) -> list[Any]:
        self.statements.append(statement)
        return [{"replication": {"class": STRATEGY, DATACENTER: "1"}}] if "replication" in statement else []


def make() -> list[Vector]:
    return [Vector(table, columns.encode(), columns) for table, columns in _tables().items()]


def read(name: str, _: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    """The columns and options that the present code expects of the table."""
    return _tables().get(name, "no such table")


def _tables() -> dict[str, str]:
    client = _Client()
    node = SimpleNamespace(datacenter=DATACENTER, release="5.0.8")
    create_keyspace(cast("CassandraClient", client), FillerSettings(), cast("Node", node))
    found = (CREATE.fullmatch(statement) for statement in client.statements)
    return {match[1]: match[2] for match in found if match is not None}


FORMATS = (Format("cassandra-tables", (), make, read),)
