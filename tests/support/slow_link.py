"""A link to a server on this machine that may be slow: a TCP proxy which limits the bytes that come back."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from dev.local_stack.process.network import LOCALHOST

if TYPE_CHECKING:
    from types import TracebackType

_CHUNK = 64 << 10
_SMALL = 8 << 10  # an answer without a file, which is never slow


class SlowLink:
    """Listens at `port`. rate: bytes a second of each connection, from the server; None: as fast as it can."""

    def __init__(self, target: int) -> None:
        self.rate: float | None = None
        self._target = target
        self._listener = socket.create_server((LOCALHOST, 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((LOCALHOST, self._target))
                for source, sink, is_answer in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pass_on, args=(source, sink, is_answer), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:  # noqa: FBT001 - of a thread
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                rate = self.rate
                if is_answer and rate is not None and len(chunk) > _SMALL:
                    time.sleep(len(chunk) / rate)
                sink.sendall(chunk)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
