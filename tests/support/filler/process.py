"""The filler as a child of a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dev.local_stack.process.network import free_ports
from dev.local_stack.process.processes import wait_until
from tests.support.program_process import READY_SECONDS, ProgramProcess

if TYPE_CHECKING:
    from pathlib import Path


class FillerProcess(ProgramProcess):
    """`cassandra-filler run`, started at once."""

    def __init__(self, log: Path, settings: dict[str, object]) -> None:
        self.port = free_ports(1)[0]
        super().__init__("filler", {"filler.operations_port": self.port, **settings}, log)
        self.process = self._launch(self.settings)

    def events(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log with this event."""
        lines = (json.loads(line) for line in self.log().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> None:
        def is_logged() -> bool:
            assert self.running.poll() is None, self.log()
            return len(self.events(event)) >= count

        wait_until(is_logged, f"the filler's event {event!r}", READY_SECONDS)
