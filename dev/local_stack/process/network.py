"""Free ports and loopback addresses, and questions to ports."""

from __future__ import annotations

import random
import re
import socket
import struct
import sys

from cdc_common.errors.codes import CdcError, Code

LOCALHOST = "127.0.0.1"
ADDRESS_TRIES = 50
CONNECT_SECONDS = 0.5
# What a server logs if another process took its port first.
PORT_TAKEN = re.compile(r"Address already in use|BindException|Port already in use")
# A frame of the native protocol, version 3 (which all servers speak): OPTIONS, without a body; the answer is SUPPORTED.
CQL_OPTIONS = struct.pack(">BBhBi", 3, 0, 0, 0x05, 0)
CQL_SUPPORTED = 0x06
CQL_HEADER_BYTES = 9


def free_ports(count: int, *addresses: str) -> list[int]:
    """Different ports that are free on every one of the addresses (127.0.0.1 by default).

    Another process may take one before it is used: who starts a server tries again then.
    """
    hosts = addresses or (LOCALHOST,)
    found: list[int] = []
    while len(found) < count:
        port = _pick(hosts[0])
        if port not in found and all(is_free(host, port) for host in hosts):
            found.append(port)
    return found


def is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def loopback_addresses(count: int) -> list[str]:
    """Addresses for the nodes of one cluster: 127.0.<y>.1, .2, … with a `y` picked at random, so that clusters that run
    at the same time keep apart. One node on a system with a single loopback address gets 127.0.0.1.

    Raises CdcError(STACK_MISSING) with the commands that add addresses where the system (macOS) has too few.
    """
    for _ in range(ADDRESS_TRIES):
        block = random.randint(2, 254)  # noqa: S311 - any will do
        addresses = [f"127.0.{block}.{number}" for number in range(1, count + 1)]
        if all(is_free(address, 0) for address in addresses):
            return addresses
        if sys.platform == "darwin":
            return _fixed_addresses(count)
    raise CdcError(Code.STACK_MISSING, f"No {count} loopback addresses are free.", "Stop servers that are left over.")


def _fixed_addresses(count: int) -> list[str]:
    addresses = [f"127.0.0.{number}" for number in range(1, count + 1)]
    missing = [address for address in addresses if not is_free(address, 0)]
    if missing:
        commands = "; ".join(f"sudo ifconfig lo0 alias {address}" for address in missing)
        raise CdcError(
            Code.STACK_MISSING, f"This system has no loopback address {', '.join(missing)}.", f"Run: {commands}"
        )
    return addresses


def accepts(host: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS):
            return True
    except OSError:
        return False


def speaks_cql(host: str, port: int) -> bool:
    """Whether a Cassandra answers there in the native protocol."""
    try:
        with socket.create_connection((host, port), CONNECT_SECONDS) as connection:
            connection.settimeout(2.0)
            connection.sendall(CQL_OPTIONS)
            answer = connection.recv(CQL_HEADER_BYTES)
    except OSError:
        return False
    return len(answer) == CQL_HEADER_BYTES and answer[4] == CQL_SUPPORTED


def _pick(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
