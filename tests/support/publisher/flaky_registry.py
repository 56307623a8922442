"""A schema registry that registers every schema, except for subjects that a test chooses."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class FlakyRegistry:
    """While it is entered it serves at `url`. `refused`: tables whose subject is incompatible; `silent`: tables whose
    subject gets no answer until `released`.
    """

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.silent: set[str] = set()
        self.released = threading.Event()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, [])

            def do_POST(self) -> None:
                schema = json.loads(self.rfile.read(int(self.headers["content-length"])))["schema"]
                if any(f".{table}-" in self.path for table in registry.silent):
                    registry.released.wait()
                if any(f".{table}-" in self.path for table in registry.refused):
                    self._answer(409, {"error_code": 40901, "message": "Schema being registered is incompatible"})
                else:
                    self._answer(200, {"id": 7, "version": 1, "subject": "any", "schema": schema})

            def _answer(self, status: int, body: object) -> None:
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._server.shutdown()
