"""A server in front of another one, which lets only those through who have its token."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FORWARDED = ("Content-Type", "Accept")
REFUSAL = b'{"error": {"message": "no", "type": "NotAuthorizedException", "code": 401}}'


@contextmanager
def gated(port: int, token: str) -> Iterator[str]:
    """The URL of the server in front of the one at `port`, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers.get("Authorization") != f"Bearer {token}":
                self._answer(401, REFUSAL)
                return
            connection = HTTPConnection("127.0.0.1", port, timeout=30)
            headers = {name: self.headers[name] for name in FORWARDED if name in self.headers}
            connection.request(self.command, self.path, headers=headers)
            answer = connection.getresponse()
            self._answer(answer.status, answer.read())
            connection.close()

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
