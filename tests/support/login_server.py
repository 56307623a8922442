"""A Cassandra node as the driver sees it when it connects: it has one row, and may refuse logins or be away."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from threading import Thread

_ERROR, _READY, _AUTHENTICATE, _SUPPORTED, _RESULT, _AUTH_SUCCESS = 0, 2, 3, 6, 8, 16  # kinds of answers
_BAD_CREDENTIALS, _PROTOCOL_ERROR, _INVALID = 0x100, 0x0A, 0x2200
_VERSION, _ANSWER = 4, 0x84
_HEADER = struct.Struct(">BBhBi")
_VARCHAR, _UUID, _INET = 0x0D, 0x0C, 0x10
_HOST = "127.0.0.1"
_LOCAL: dict[str, tuple[int, bytes]] = {
    "key": (_VARCHAR, b"local"),
    "rpc_address": (_INET, socket.inet_aton(_HOST)),
    "broadcast_address": (_INET, socket.inet_aton(_HOST)),
    "cluster_name": (_VARCHAR, b"test"),
    "data_center": (_VARCHAR, b"cdc"),
    "rack": (_VARCHAR, b"rack"),
    "release_version": (_VARCHAR, b"4.1.10"),
    "partitioner": (_VARCHAR, b"org.apache.cassandra.dht.Murmur3Partitioner"),
    "host_id": (_UUID, b"\1" * 16),
}


def _string(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


_CQL_VERSION = _string("CQL_VERSION") + struct.pack(">H", 1) + _string("3.4.4")


class LoginServer:
    """Listens on a port of its own, also after `stop` and `start`."""

    def __init__(self) -> None:
        self.port = 0
        self.refuses_logins = False
        self.start()

    def start(self) -> None:
        self._connections: list[socket.socket] = []
        self._listening = socket.create_server((_HOST, self.port))
        self.port = self._listening.getsockname()[1]
        Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def stop(self) -> None:
        for connection in (self._listening, *self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                self._connections.append(connection)
                Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection.makefile("rb") as requests:
            while len(head := requests.read(_HEADER.size)) == _HEADER.size:
                version, _, stream, kind, length = _HEADER.unpack(head)
                body = requests.read(length)
                if version > _VERSION:
                    kind, answer = _error(_PROTOCOL_ERROR, "Invalid or unsupported protocol version")
                else:
                    kind, answer = self._answer(kind, body)
                connection.sendall(_HEADER.pack(_ANSWER, 0, stream, kind, len(answer)) + answer)

    def _answer(self, kind: int, body: bytes) -> tuple[int, bytes]:
        match kind:
            case 5:  # OPTIONS
                answer = _SUPPORTED, struct.pack(">H", 2) + _CQL_VERSION + _string("COMPRESSION") + struct.pack(">H", 0)
            case 1:  # STARTUP
                answer = _AUTHENTICATE, _string("org.apache.cassandra.auth.PasswordAuthenticator")
            case 15 if self.refuses_logins:  # AUTH_RESPONSE
                answer = _error(_BAD_CREDENTIALS, "Unable to perform authentication: Cannot achieve QUORUM")
            case 15:
                answer = _AUTH_SUCCESS, struct.pack(">i", -1)
            case 11:  # REGISTER
                answer = _READY, b""
            case 7 if b"system.peers_v2" not in body:  # QUERY
                answer = _RESULT, _rows(0 if b"system.peers" in body else 1)
            case _:
                answer = _error(_INVALID, "not here")
        return answer


def _rows(count: int) -> bytes:
    """So many times the one row."""
    columns = b"".join(_string(name) + struct.pack(">H", kind) for name, (kind, _) in _LOCAL.items())
    row = b"".join(struct.pack(">i", len(value)) + value for _, value in _LOCAL.values())
    head = struct.pack(">iii", 2, 1, len(_LOCAL)) + _string("system") + _string("local")
    return head + columns + struct.pack(">i", count) + count * row


def _error(code: int, text: str) -> tuple[int, bytes]:
    return _ERROR, struct.pack(">i", code) + _string(text)
