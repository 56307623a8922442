"""One of our programs as a child of a test: the base of PublisherProcess and FillerProcess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.http_get import get
from tests.support.warm_start import start as start_warm

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 120.0


class ProgramProcess:
    """`python -m NAME run` with the settings of a test; `program` is the command that stands for `python -m NAME`,
    which is started warm.
    """

    def __init__(self, name: str, settings: dict[str, object], log: Path) -> None:
        self.name = name
        self.settings = settings
        self.program = [sys.executable, "-m", name]
        self.process: subprocess.Popen[bytes] | None = None
        self._log = log

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """The process that was started last; it may have ended."""
        assert self.process is not None
        return self.process

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait(self) -> int:
        return self.running.wait(READY_SECONDS)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.running.terminate()
        return self.wait()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def get(self, path: str) -> tuple[int, str]:
        """Status and body that its operations port serves."""
        return get(int(str(self.settings[f"{self.name}.operations_port"])), path)

    def status(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.get("/status")[1])
        return value

    def command(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of another command with the same settings."""
        command = self._command(self.settings, *arguments)
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def _launch(self, settings: dict[str, object]) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            if self.program != [sys.executable, "-m", self.name]:
                return subprocess.Popen(self._command(settings, "run"), cwd=ROOT, stdout=log, stderr=log)
            file, arguments = log.fileno(), [*_flags(settings), "run"]
            return start_warm(self.name, arguments, env=os.environ, cwd=ROOT, stdout=file, stderr=file)

    def _command(self, settings: dict[str, object], *arguments: str) -> list[str]:
        return [*self.program, *_flags(settings), *arguments]


def _flags(settings: dict[str, object]) -> list[str]:
    return [f"--set={name}={value}" for name, value in settings.items()]
