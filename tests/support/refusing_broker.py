"""A Kafka broker that refuses every SASL login; librdkafka's own mock broker knows no logins."""

from __future__ import annotations

import socket
import struct
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_SASL_HANDSHAKE, _API_VERSIONS, _SASL_AUTHENTICATE = 17, 18, 36
_REFUSED = 58  # SASL_AUTHENTICATION_FAILED
_SIZE = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")  # ApiKey, its version, the number of the request


@contextmanager
def refusing_broker() -> Iterator[str]:
    """Its bootstrap.servers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=_accept, args=(listening,), daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listening.accept()
            Thread(target=_serve, args=(connection,), daemon=True).start()


def _serve(connection: socket.socket) -> None:
    with suppress(OSError), connection, connection.makefile("rb") as requests:
        while len(size := requests.read(_SIZE.size)) == _SIZE.size:
            request = requests.read(*_SIZE.unpack(size))
            key, _, number = _HEAD.unpack_from(request)
            answer = _SIZE.pack(number) + _answer(key)
            connection.sendall(_SIZE.pack(len(answer)) + answer)


def _answer(key: int) -> bytes:
    if key == _API_VERSIONS:
        known = {_SASL_HANDSHAKE: 1, _API_VERSIONS: 3, _SASL_AUTHENTICATE: 0}
        listed = b"".join(struct.pack(">hhhB", api, 0, latest, 0) for api, latest in known.items())
        return struct.pack(">hB", 0, len(known) + 1) + listed + struct.pack(">iB", 0, 0)
    if key == _SASL_HANDSHAKE:
        return struct.pack(">hi", 0, 1) + _string("PLAIN")
    return struct.pack(">h", _REFUSED) + _string("Invalid username or password") + _SIZE.pack(-1)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()
