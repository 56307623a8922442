"""The port on which a program is watched."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program import operations
from cdc_common.program.operations import Operations
from cdc_common.program.status_client import fetch_status
from dev.local_stack.process.network import free_ports
from filler.settings import FillerSettings
from tests.support.http_get import get, post


def test_health_is_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(operations, "monotonic", lambda: now[0])
    with Operations("127.0.0.1", free_ports(1)[0], dict) as served:
        assert get(served.port, "/health")[0] == 200
        now[0] += 61
        assert get(served.port, "/health")[0] == 503
        served.beat()
        status, body = get(served.port, "/health")
        assert (status, json.loads(body)) == (200, {"ok": True, "loop_seconds_ago": 0.0})


def test_status_and_metrics_and_nothing_else() -> None:
    with Operations("127.0.0.1", free_ports(1)[0], lambda: {"is": "well"}) as served:
        assert get(served.port, "/status") == (200, '{"is": "well"}\n')
        assert "process_resident_memory_bytes" in get(served.port, "/metrics")[1]
        assert get(served.port, "/other")[0] == 404


def test_who_connects_and_asks_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations._RequestHandler, "timeout", 0.2)
    with (
        Operations("127.0.0.1", free_ports(1)[0], dict) as served,
        socket.create_connection(("127.0.0.1", served.port)) as idle,
    ):
        assert get(served.port, "/health")[0] == 200
        idle.settimeout(30)
        assert idle.recv(1) == b""  # it is hung up on


def test_who_opens_many_connections_loses_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "MOST_CONNECTIONS", 4)
    with Operations("127.0.0.1", free_ports(1)[0], dict) as served, ExitStack() as opened:
        before = threading.active_count()
        held = []
        for _ in range(20):
            held.append(opened.enter_context(socket.create_connection(("127.0.0.1", served.port))))
            held[-1].sendall(b"GET /health HTTP/1.1\r\n")  # and never the end of it
        held[0].settimeout(30)
        assert held[0].recv(1) == b""
        assert get(served.port, "/health")[0] == 200
        assert threading.active_count() <= before + 5
        held[-1].sendall(b"\r\n")
        held[-1].settimeout(30)
        assert held[-1].recv(8) == b"HTTP/1.0"


def test_it_listens_on_an_address_of_version_6(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    monkeypatch.setattr(socket, "getfqdn", None)  # a slow DNS would hold up the start
    settings = FillerSettings(operations_address="::1", operations_port=free_ports(1)[0])
    with Operations(settings.operations_address, settings.operations_port, lambda: {"is": "well"}):
        assert fetch_status("filler", settings, str, as_json=True) == '{"is": "well"}'


def test_the_end_waits_for_no_connection() -> None:
    with Operations("127.0.0.1", free_ports(1)[0], dict) as served:
        idle = socket.create_connection(("127.0.0.1", served.port))
        assert get(served.port, "/health")[0] == 200
        began = time.monotonic()
    assert time.monotonic() - began < operations.IDLE_SECONDS / 2
    idle.close()


def test_a_port_in_use_is_an_error_and_none_is_none() -> None:
    port = free_ports(1)[0]
    with Operations("127.0.0.1", port, dict):
        with pytest.raises(CdcError, match=str(port)) as caught, Operations("127.0.0.1", port, dict):
            pass
        assert caught.value.code is Code.PORT_IN_USE
    with Operations("127.0.0.1", 0, dict) as served:
        assert served.port == 0


def test_a_command_takes_a_list_of_names_in_a_post_only() -> None:
    got: list[list[str]] = []

    def command(names: list[str]) -> dict[str, int]:
        got.append(names)
        return {"count": len(names)}

    with Operations("127.0.0.1", free_ports(1)[0], dict, commands={"/do": command}) as served:
        assert post(served.port, "/do", '["a", "b"]') == (200, '{"count": 2}\n')
        assert post(served.port, "/do", "[]") == (200, '{"count": 0}\n')
        bodies = ("", "{}", "[1]", "no JSON", "[" * 100_000)
        assert [post(served.port, "/do", body)[0] for body in bodies] == [400] * len(bodies)
        assert post(served.port, "/do", "[]", "text/plain")[0] == 400  # what a form of any web page may send
        assert post(served.port, "/status", "[]") == (200, "{}\n")
        assert get(served.port, "/do")[0] == 400
        with socket.create_connection(("127.0.0.1", served.port), 30) as strange:  # a digit that is no number
            strange.sendall(b"POST /do HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: \xb2\r\n\r\n")
            assert strange.recv(12) == b"HTTP/1.0 400"
    assert got == [["a", "b"], []]
