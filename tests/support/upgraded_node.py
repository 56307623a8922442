"""The answers to CQL queries of a node that is upgraded: set `node.release` and `node.live_settings`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cdc_common.errors.codes import CdcError, Code
from filler.keyspace import STRATEGY


@dataclass
class UpgradedNode:
    """Takes the place of a CassandraClient. `live_settings`: None if it does not report them, as 3.11."""

    release: str = "3.11.19"
    live_settings: Mapping[str, str] | None = None
    host_id: UUID = field(default=UUID(int=1))

    def rows(self, query: str, _parameters: Sequence[object] = ()) -> list[dict[str, Any]]:
        if "system.local" in query:
            own = {"host_id": self.host_id, "cluster_name": "test", "data_center": "cdc"}
            return [{**own, "release_version": self.release}]
        if "system_views.settings" in query:
            if self.live_settings is None:
                raise CdcError(Code.CASSANDRA_QUERY, "There is no system_views.", "Upgrade.")
            return [{"name": name, "value": value} for name, value in self.live_settings.items()]
        if "SELECT replication" in query:
            return [{"replication": {"class": STRATEGY, "cdc": "1"}}]
        return []

    def write(self, _query: str, _parameters: Sequence[object] = ()) -> None:
        return
