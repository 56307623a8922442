"""A publisher as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from local_stack.servers.interfaces import CassandraServers

from local_stack.process.network import free_ports
from tests.support.http_get import get

ROOT = Path(__file__).resolve().parents[3]
READY_SECONDS = 120.0


def settings_beside(cassandra: CassandraServers, state: Path) -> dict[str, object]:
    """Of a publisher on the first node, but for Kafka and the registry."""
    return {
        "cassandra.contact_points": cassandra.contact_points[0],
        "cassandra.port": cassandra.port,
        "kafka.raw_partitions": 3,
        "node.cdc_raw_directory": cassandra.nodes[0].cdc_raw,
        "publisher.state_directory": state,
        "publisher.operations_port": free_ports(1)[0],
    }


def eventually(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    """Of what a publisher says of itself once a second."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.2)


class PublisherProcess:
    """`cassandra-publisher run` with settings of a test; `program` is the command that stands for the name."""

    def __init__(self, settings: dict[str, object], folder: Path) -> None:
        self.settings = settings
        self.program = [sys.executable, "-m", "publisher"]
        self._log = folder / "publisher.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **changed: object) -> PublisherProcess:
        """Returns once it tails the log."""
        started_at = len(self.log())
        self.begin(**changed)
        self.wait_for('"ready"', started_at)
        return self

    def begin(self, **changed: object) -> None:
        """Returns before it is ready."""
        self._process = self._launch(changed)

    def wait_for(self, words: str, since: int = 0) -> None:
        """Wait until they are in the log after its first `since` characters."""
        assert self._process is not None
        deadline = time.monotonic() + READY_SECONDS
        while words not in self.log()[since:]:
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def fail(self, **changed: object) -> tuple[int, str]:
        """Exit status and output of one that cannot start, or cannot go on."""
        started_at = len(self.log())
        status = self._launch(changed).wait(READY_SECONDS)
        return status, self.log()[started_at:]

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(READY_SECONDS)

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def command(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of another command with the same settings."""
        done = subprocess.run(
            self._command(self.settings, *arguments), cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of what it serves."""
        return get(int(str(self.settings["publisher.operations_port"])), path)

    def most_memory_mib(self) -> float:
        """By the kernel's own high-water mark of what was resident."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) / 1024

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def _launch(self, changed: dict[str, object]) -> subprocess.Popen[bytes]:
        values = {**self.settings, **{name.replace("__", "."): value for name, value in changed.items()}}
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command(values, "run"), cwd=ROOT, stdout=log, stderr=log)

    def _command(self, settings: dict[str, object], *arguments: str) -> list[str]:
        return [*self.program, *(f"--set={name}={value}" for name, value in settings.items()), *arguments]
