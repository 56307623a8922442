"""Confluent's JavaScript client, in a process of Node.js that does what a test asks."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any, Self

from tests.support import node_packages

if TYPE_CHECKING:
    from types import TracebackType


class RestError(Exception):
    """The error that the client raised: `status` and `code` are None unless the registry said them."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["error"])
        self.status: int | None = answer["status"]
        self.code: int | None = answer["errorCode"]


class JavaScriptClient:
    """A context manager. Skips the test where Node.js is not installed."""

    def __init__(self, url: str, **config: object) -> None:
        """`config`: of Confluent's ClientConfig."""
        program = node_packages.node()
        settings = {"baseURLs": [url], "maxRetries": 0, **config}
        command = [program, str(node_packages.script("confluent_client.js")), json.dumps(settings)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def call(self, method: str, *args: object) -> Any:  # noqa: ANN401 - JSON
        """Return the answer of the client's method; RestError if it throws."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"method": method, "args": args}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the client's process has ended"
        answer = json.loads(line)
        if "error" in answer:
            raise RestError(answer)
        return answer.get("value")
