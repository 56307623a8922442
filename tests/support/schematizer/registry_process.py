"""A registry as it is run: a child process that answers over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.warm_start import start as start_warm

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
START_SECONDS = 90


@dataclass
class Answer:
    status: int
    content_type: str
    body: Any


@dataclass
class Registry:
    """The child process; `url` is set when it answers."""

    database: Path
    url: str = ""
    operations_port: int = 0  # none
    port: int = 0  # any
    database_url: str = ""
    """Instead of the file `database`."""
    settings: dict[str, str] = field(default_factory=dict)
    """More settings, by `schematizer.key`."""
    program: list[str] | None = None
    """The command that stands for `python -m schematizer`, which is started warm."""
    process: subprocess.Popen[str] | None = None
    log: list[str] = field(default_factory=list)

    def start(self) -> Registry:
        arguments = ["serve", "--port", str(self.port), "--log-format", "json"]
        url = self.database_url or f"sqlite:///{self.database}"
        arguments += ["--database-url", url, "--operations-port", str(self.operations_port)]
        for name, value in self.settings.items():
            arguments += ["--set", f"{name}={value}"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
        folder = self.database.parent
        if self.program is None:
            self.process = start_warm(
                "schematizer", arguments, env=environment, cwd=folder, stdout=1, stderr=subprocess.PIPE
            )
        else:
            command = [*self.program, *arguments]
            self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)
        listening = threading.Event()
        threading.Thread(target=self._follow, args=(self.process, listening), daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        while not listening.wait(0.05):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
        return self

    def _follow(self, process: subprocess.Popen[str], listening: threading.Event) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.log.append(line)
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("event") == "ready":
                self.url = event["url"]
                listening.set()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str | None = CONTENT_TYPE,
        accept: str | None = None,
    ) -> Answer:
        """A request as it comes; `body` is JSON, or bytes as they are."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"Content-Type": content_type} if content_type else {}
        headers |= {"Accept": accept} if accept else {}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)  # noqa: S310 - http
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - http
                return Answer(response.status, response.headers["Content-Type"], json.load(response))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers["Content-Type"], json.load(error))

    def status(self, method: str, path: str) -> int:
        """The status of a request whose answer has no body."""
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310 - http
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - http
            status: int = response.status
        return status

    def register(self, subject: str, schema: object) -> Answer:
        return self.call("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})
