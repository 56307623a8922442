"""What the servers offer, whether they run as child processes or in containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType


class Server(Protocol):
    """A thing that is started once and can be hurt. What it has stored stays until `close`."""

    @property
    def log(self) -> Path: ...

    @property
    def is_running(self) -> bool: ...

    def stop(self) -> None:
        """Gracefully, and wait."""

    def kill(self) -> None:
        """SIGKILL."""

    def restart(self) -> None: ...

    def pause(self) -> None:
        """SIGSTOP: connections stay, nothing answers."""

    def resume(self) -> None: ...


class KafkaServer(Server, Protocol):
    """One broker. As a context manager it is closed at the end, and keeps its logs if something failed."""

    @property
    def bootstrap_servers(self) -> str: ...

    def start(self) -> Self: ...

    def close(self, *, keep: bool = False) -> None:
        """Kill it and remove its files; with `keep` its logs stay."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Node(Server, Protocol):
    """One Cassandra node."""

    @property
    def name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def datacenter(self) -> str: ...

    @property
    def cdc_enabled(self) -> bool: ...

    @property
    def cdc_raw(self) -> Path: ...

    def start(self) -> None: ...

    def nodetool(self, *arguments: str) -> str: ...


class CassandraServers(Protocol):
    """A cluster."""

    @property
    def release(self) -> str: ...

    @property
    def nodes(self) -> Sequence[Node]: ...

    @property
    def cdc_nodes(self) -> Sequence[Node]: ...

    @property
    def contact_points(self) -> list[str]: ...

    @property
    def port(self) -> int: ...

    def start(self) -> Self: ...

    def close(self, *, keep: bool = False) -> None:
        """Kill the nodes and remove their files; with `keep` their logs stay."""
