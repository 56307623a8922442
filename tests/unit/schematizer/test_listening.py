"""The socket that the service listens on."""

from __future__ import annotations

import socket

from schematizer.server import _listen


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """An answer of two packets takes 40 ms without TCP_NODELAY on the connections."""
    with (
        _listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
