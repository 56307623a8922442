"""A second broker that joins the cluster of another one, for what moves between brokers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from pathlib import Path

REPLICATED = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
"""Settings of both: what one of them leads moves to the other one within seconds."""


class SecondBroker(KafkaBroker):
    """It is no controller, so the first one can go on without it."""

    def __init__(self, first: KafkaBroker) -> None:
        super().__init__(settings=REPLICATED, heap_mib=256)
        self._first = first

    def properties(self) -> dict[str, str]:
        first = self._first
        return {
            **super().properties(),
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": f"1@{LOCALHOST}:{first.controller_port}",
            "listeners": f"PLAINTEXT://{LOCALHOST}:{self.port}",
        }

    def cluster_id(self) -> str:
        return _cluster_id(self._first.folder.path / "data" / "meta.properties")


def _cluster_id(meta: Path) -> str:
    found = re.search(r"^cluster\.id=(.+)$", meta.read_text(), re.MULTILINE)
    assert found is not None
    return found.group(1)
