"""A publisher as a process of its own."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.servers.cassandra import CassandraCluster

from dev.local_stack.process.network import free_ports
from dev.local_stack.servers.stack import OF_A_SHARED_MACHINE
from tests.support.program_process import READY_SECONDS, ProgramProcess


def settings_beside(cassandra: CassandraCluster, state: Path) -> dict[str, object]:
    """The settings of a publisher on the first node, without those of Kafka and the registry."""
    return {
        "cassandra.contact_points": cassandra.contact_points[0],
        "cassandra.port": cassandra.port,
        "kafka.raw_partitions": 3,
        "node.cdc_raw_directory": cassandra.nodes[0].cdc_raw,
        "publisher.state_directory": state,
        "publisher.operations_port": free_ports(1)[0],
        **OF_A_SHARED_MACHINE,
    }


def eventually(is_so: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until it is so. A publisher reports about itself once a second."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


class PublisherProcess(ProgramProcess):
    """`cassandra-publisher run`, started again and again with other settings."""

    def __init__(self, settings: dict[str, object], folder: Path) -> None:
        super().__init__("publisher", settings, folder / "publisher.log")

    def start(self, **changed: object) -> PublisherProcess:
        """Returns once it tails the log."""
        started_at = len(self.log())
        self.begin(**changed)
        self.wait_for('"ready"', started_at)
        return self

    def begin(self, **changed: object) -> None:
        """Returns before it is ready."""
        self.process = self._launch(self._changed(changed))

    def wait_for(self, words: str, since: int = 0) -> None:
        """Wait until the log contains the words after its first `since` characters."""
        deadline = time.monotonic() + READY_SECONDS
        while words not in self.log()[since:]:
            assert self.running.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def fail(self, **changed: object) -> tuple[int, str]:
        """Exit status and output of one that cannot start, or cannot continue."""
        started_at = len(self.log())
        status = self._launch(self._changed(changed)).wait(READY_SECONDS)
        return status, self.log()[started_at:]

    def pause(self) -> None:
        self.running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.running.send_signal(signal.SIGCONT)

    def most_memory_mib(self) -> float:
        """Return the kernel's own high-water mark of resident memory, in MiB."""
        status = Path(f"/proc/{self.running.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024

    def _changed(self, changed: dict[str, object]) -> dict[str, object]:
        """The settings with these, whose names have `__` for the dot."""
        return {**self.settings, **{name.replace("__", "."): value for name, value in changed.items()}}
