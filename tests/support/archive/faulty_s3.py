"""A link to a store of S3: it can be down, refuse each request with 503, or ask some of them to slow down."""

from __future__ import annotations

import random
import re
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Self

from dev.local_stack.process.network import LOCALHOST

if TYPE_CHECKING:
    from types import TracebackType

Mode = Literal["pass", "down", "unavailable", "slow_down"]
_CHUNK = 64 << 10
_BODIES = {"unavailable": ("ServiceUnavailable", "Service Unavailable"), "slow_down": ("SlowDown", "Slow Down")}
_SHARE = 0.4  # of the connections that are asked to slow down


class FaultyS3:
    """Listens at `port`, and passes connections to the port of a store while `mode` is `pass`."""

    def __init__(self, target: int) -> None:
        self.mode: Mode = "pass"
        self.refused = 0
        """The number of requests that were refused."""
        self._target = target
        self._rng = random.Random(1)
        self._listener = socket.create_server((LOCALHOST, 0), backlog=128)
        self._open: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def turn(self, mode: Mode) -> None:
        """Change the mode. Connections that are open end."""
        self.mode = mode
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._begin(client)

    def _begin(self, client: socket.socket) -> None:
        mode = self.mode
        if mode == "slow_down" and self._rng.random() > _SHARE:
            mode = "pass"
        if mode == "pass":
            server = socket.create_connection((LOCALHOST, self._target))
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()
            return
        self.refused += 1
        if mode == "down":
            client.close()
        else:
            threading.Thread(target=_refuse, args=(client, *_BODIES[mode]), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _refuse(client: socket.socket, code: str, reason: str) -> None:
    """Answer one request with 503 after its body, and close the connection."""
    with suppress(OSError), client:
        request = b""
        while b"\r\n\r\n" not in request:
            chunk = client.recv(_CHUNK)
            if not chunk:
                return
            request += chunk
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if b"100-continue" not in head.lower():
            left = (int(length[1]) if length else 0) - len(body)
            while left > 0 and (chunk := client.recv(_CHUNK)):
                left -= len(chunk)
        text = f"<Error><Code>{code}</Code><Message>{reason}</Message></Error>".encode()
        client.sendall(
            f"HTTP/1.1 503 {reason}\r\nContent-Type: application/xml\r\nContent-Length: {len(text)}\r\n"
            "Connection: close\r\n\r\n".encode()
            + (b"" if head.startswith(b"HEAD") else text)
        )
