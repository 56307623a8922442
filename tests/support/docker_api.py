"""Serve the part of Docker's HTTP API that one container needs, for the real docker-py and testcontainers."""

from __future__ import annotations

import json
import re
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

CONTAINER, EXECUTION, NETWORK = "c0ffee" * 10, "beef" * 16, "abba" * 16
LOG = "INFO it works\n"
STDOUT = 1


class DockerApi:
    """Inside it, `url` answers.

    `requests`: (method, path without version and query). `created`: what it was to create, `network`: the network.
    `executed`: a command inside.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.created: dict[str, Any] = {}
        self.executed: list[str] = []
        self.network: dict[str, Any] = {}
        self.state: dict[str, object] = {"Running": False, "Paused": False, "ExitCode": 0, "Status": "created"}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def url(self) -> str:
        return f"tcp://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, method: str, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Status and content; 404 for what no test has needed."""
        self.requests.append((method, path))
        for (verb, pattern), answer in self._routes().items():
            if verb == method and re.fullmatch(pattern, path):
                return answer(body)
        return 404, b'{"message": "not in this engine"}'

    def _routes(self) -> dict[tuple[str, str], Callable[[dict[str, Any]], tuple[int, bytes]]]:
        own = f"/containers/{CONTAINER}"
        return {
            ("GET", "/version"): lambda _: _json({"ApiVersion": "1.43", "Version": "24.0.0"}),
            ("GET", "/images/.+/json"): lambda _: _json({"Id": "sha256:1", "RepoTags": []}),
            ("POST", "/containers/create"): self._create,
            ("GET", f"{own}/json"): lambda _: _json(self._inspected()),
            ("GET", f"{own}/logs"): lambda _: (200, _frame(LOG)),
            ("POST", f"{own}/start"): lambda _: self._become(Running=True, Status="running"),
            ("POST", f"{own}/pause"): lambda _: self._become(Paused=True, Status="paused"),
            ("POST", f"{own}/unpause"): lambda _: self._become(Paused=False, Status="running"),
            ("POST", f"{own}/stop"): lambda _: self._become(Running=False, Status="exited", ExitCode=143),
            ("POST", f"{own}/kill"): lambda _: self._become(Running=False, Status="exited", ExitCode=137),
            ("POST", f"{own}/wait"): lambda _: _json({"StatusCode": self.state["ExitCode"]}),
            ("DELETE", own): lambda _: (204, b""),
            ("POST", f"{own}/exec"): self._execute,
            ("POST", f"/exec/{EXECUTION}/start"): lambda _: (200, _frame("it did")),
            ("GET", f"/exec/{EXECUTION}/json"): lambda _: _json({"ExitCode": 3}),
            ("POST", "/networks/create"): self._create_network,
            ("GET", f"/networks/{NETWORK}"): lambda _: _json({"Id": NETWORK, "Name": self.network["Name"]}),
            ("DELETE", f"/networks/{NETWORK}"): lambda _: (204, b""),
        }

    def _create(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.created = body
        return _json({"Id": CONTAINER, "Warnings": []}, 201)

    def _create_network(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.network = body
        return _json({"Id": NETWORK, "Warning": ""}, 201)

    def _execute(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.executed = body["Cmd"]
        return _json({"Id": EXECUTION}, 201)

    def _become(self, **state: object) -> tuple[int, bytes]:
        self.state.update(state)
        return 204, b""

    def _inspected(self) -> dict[str, Any]:
        return {"Id": CONTAINER, "Name": "/one", "State": self.state, "Config": {"Tty": False, "Image": "one"}}


def _json(value: dict[str, Any], status: int = 200) -> tuple[int, bytes]:
    return status, json.dumps(value).encode()


def _frame(text: str) -> bytes:
    """Frame the text as Docker multiplexes the outputs of a container without a terminal."""
    return struct.pack(">BxxxL", STDOUT, len(text)) + text.encode()


def _handler(api: DockerApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # outputs end where the connection does

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = re.sub(r"^/v\d+\.\d+(?=/)", "", self.path.partition("?")[0])
            status, content = api.answer(self.command, path, json.loads(body or b"{}") or {})
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if path.startswith("/exec/"):
                time.sleep(0.2)  # docker-py reads this output from the socket, and loses what came with the headers
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Do not log on stderr."""

    return Handler
