"""The filler as a child of a test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from local_stack.process.network import free_ports
from local_stack.process.processes import wait_until
from tests.support.http_get import get

ROOT = Path(__file__).resolve().parents[3]
READY_SECONDS = 120.0


class FillerProcess:
    """Started at once; `settings` as table.key."""

    def __init__(self, log: Path, settings: dict[str, object]) -> None:
        self._log = log
        self.port = free_ports(1)[0]
        settings = {"filler.operations_port": self.port, **settings}
        self.settings = [f"--set={name}={value}" for name, value in settings.items()]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "filler", *self.settings, "run"],
                cwd=ROOT,
                stdout=file,
                stderr=file,
            )

    def log(self) -> str:
        return self._log.read_text()

    def events(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log with this event."""
        lines = (json.loads(line) for line in self.log().splitlines() if line.startswith("{"))
        return [line for line in lines if line["event"] == event]

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of what it serves."""
        return get(self.port, path)

    def status(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.get("/status")[1])
        return value

    def command(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of another command with the same settings."""
        command = [sys.executable, "-m", "filler", *self.settings, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def wait_for(self, event: str, count: int = 1) -> None:
        def is_logged() -> bool:
            assert self.process.poll() is None, self.log()
            return len(self.events(event)) >= count

        wait_until(is_logged, f"the filler's event {event!r}", READY_SECONDS)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(READY_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
