"""The operations port of a program: /metrics for Prometheus, /health for a supervisor, /status for the status command.

A program may also take commands: POST requests with a JSON list of strings.

/health only checks the program's own loop: an unreachable Kafka or Cassandra must not take a pod out of service.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import structlog
from prometheus_client import CollectorRegistry, Gauge, PlatformCollector, ProcessCollector
from prometheus_client.exposition import make_wsgi_app

import cdc_native
from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType
    from wsgiref.types import StartResponse, WSGIEnvironment

    Command: TypeAlias = Callable[[list[str]], dict[str, Any]]

log = structlog.get_logger(__name__)

JSON_TYPE = "application/json"
HEALTH_SECONDS = 60.0
IDLE_SECONDS = 10.0
MOST_CONNECTIONS = 64
_MAX_BODY = 1 << 20


class Operations:
    """The endpoints of one program; none if its port is 0.

    `registry` has its metrics. Its loop calls `beat`. `status` returns the JSON object of /status. `commands`: by
    path; each gets the strings of a request and returns a JSON object. `health_seconds`: how long a round of the loop
    may take. `has_core`: whether the program can use the native core, so that the metrics say whether it does.
    `problem`: why the program is not well, although its loop runs; empty if it is.
    """

    def __init__(  # noqa: PLR0913 - what differs by keyword
        self,
        address: str,
        port: int,
        status: Callable[[], dict[str, Any]],
        *,
        commands: Mapping[str, Command] | None = None,
        health_seconds: float = HEALTH_SECONDS,
        has_core: bool = True,
        problem: Callable[[], str] = str,
    ) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        if has_core:
            in_use = Gauge(
                "cdc_compiled",
                "1 if the native core is in use, 0 if the program runs as plain Python.",
                registry=self.registry,
            )
            in_use.set(cdc_native.is_enabled())
        self._metrics = make_wsgi_app(self.registry)
        self._address = address
        self._asked_port = port
        self._status = status
        self._commands = commands or {}
        self._health_seconds = health_seconds
        self._problem = problem
        self._last_beat = monotonic()
        self._server: WSGIServer | None = None

    @property
    def port(self) -> int:
        """The port it listens on; 0 if it does not."""
        return self._server.server_port if self._server else 0

    def __enter__(self) -> Self:
        if not self._asked_port:
            return self
        try:
            server_class = _ServerOfIPv6 if ":" in self._address else _Server
            self._server = make_server(
                self._address, self._asked_port, self._answer, server_class=server_class, handler_class=_RequestHandler
            )
        except OSError as error:
            port = self._asked_port
            raise CdcError(
                Code.PORT_IN_USE,
                f"Cannot listen on {self._address}:{port}, this program's operations_address and operations_port: "
                f"{error.strerror}.",
                f"Set operations_port to a free port, or to 0 for none. What uses it: ss -ltnp 'sport = :{port}'.",
            ) from error
        threading.Thread(target=self._server.serve_forever, name="operations", daemon=True).start()
        log.info("operations port open", address=self._address, port=self.port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def beat(self) -> None:
        """The program's loop has completed a round."""
        self._last_beat = monotonic()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path in self._commands:
            return self._run_command(self._commands[path], environ, start_response)
        if path == "/metrics":
            answer: Iterable[bytes] = self._metrics(environ, start_response)
            return answer
        if path == "/health":
            silent = monotonic() - self._last_beat
            problem = self._problem()
            is_well = silent < self._health_seconds and not problem
            health: dict[str, Any] = {"ok": is_well, "loop_seconds_ago": round(silent, 1)}
            if problem:
                health["problem"] = problem
            return _json(start_response, health, is_well=is_well)
        if path == "/status":
            return _json(start_response, self._status())
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"/metrics, /health or /status\n"]

    def _run_command(self, command: Command, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        """Run the command for a POST of JSON only: a browser that shows another site's page does not send one without
        asking first.
        """
        size = environ.get("CONTENT_LENGTH") or "0"
        is_json = environ.get("CONTENT_TYPE") == JSON_TYPE and size.isdecimal() and int(size) <= _MAX_BODY
        if environ.get("REQUEST_METHOD") != "POST" or not is_json:
            start_response("400 Bad Request", [("Content-Type", "text/plain")])
            return [b"POST a JSON list of strings\n"]
        try:
            names = json.loads(environ["wsgi.input"].read(int(size)))
        except (ValueError, RecursionError):
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            start_response("400 Bad Request", [("Content-Type", "text/plain")])
            return [b"POST a JSON list of strings\n"]
        return _json(start_response, command(names))


def _json(start_response: StartResponse, value: dict[str, Any], *, is_well: bool = True) -> list[bytes]:
    start_response("200 OK" if is_well else "503 Service Unavailable", [("Content-Type", "application/json")])
    return [json.dumps(value).encode() + b"\n"]


class _Server(ThreadingMixIn, WSGIServer):
    """A thread for each connection: an idle one must block neither the others nor the program's exit. A connection more
    than MOST_CONNECTIONS ends the oldest: whoever keeps many open takes neither the program's files nor its memory.
    """

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - the library's own
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """As the library's, but without asking the DNS for a name that is not used."""
        TCPServer.server_bind(self)
        host, self.server_port = self.server_address[:2]
        self.server_name = str(host)
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the library's own signature
        with self._lock:
            if len(self._open) >= MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):  # the client has gone
                    oldest.shutdown(socket.SHUT_RDWR)  # its own thread then closes it
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the library's own signature
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - the library's own signature
        log.debug("request failed", client=client_address, reason=repr(sys.exception()))


class _ServerOfIPv6(_Server):
    address_family = socket.AF_INET6


class _RequestHandler(WSGIRequestHandler):
    """Logs requests at debug level only."""

    timeout = IDLE_SECONDS  # an idle connection keeps its thread for this long

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the library's own signature
        log.debug("request", line=format % args)
