"""The bases of nodes, brokers, programs and other servers: start, stop, kill, pause, restart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from local_stack.process.folders import ServerFolder
from local_stack.process.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

P = TypeVar("P", bound=ServerProcess)


class Restartable(ABC, Generic[P]):
    """One process at a time; what it keeps in files stays when it is stopped or killed, and `start` goes on with it."""

    process: P | None = None
    stop_seconds = 30.0  # the grace of a controlled shutdown

    @abstractmethod
    def start(self) -> object:
        """Start it, or start it again; returns when it works. Raises CdcError(SERVER_FAILED) with its log's end."""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_running

    def stop(self, grace_seconds: float | None = None) -> None:
        """SIGTERM and wait for a controlled shutdown, `stop_seconds` by default; SIGKILL to what is left then."""
        if self.process:
            self.process.stop(self.stop_seconds if grace_seconds is None else grace_seconds)

    def kill(self) -> None:
        """SIGKILL to it and all that it started: what it had not synced is lost, as in a crash."""
        if self.process:
            self.process.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections and answers nothing."""
        self._running().pause()

    def resume(self) -> None:
        self._running().resume()

    def _running(self) -> P:
        assert self.process is not None
        return self.process


class Managed(ABC):
    """A context manager: it starts on entry; on exit it ends and its files go, but for the logs if something failed."""

    @abstractmethod
    def start(self) -> Self: ...

    @abstractmethod
    def close(self, *, keep: bool = False) -> None:
        """Kill it; remove its files, with `keep` all but the logs and settings."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException as error:
            self.close(keep=isinstance(error, Exception))
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(keep=isinstance(error, Exception))


class FolderServer(Restartable[ServerProcess], Managed):
    """A server of one process with a folder of its own: ports and data stay when it is stopped or killed."""

    def __init__(self, name: str, folder: Path | None, report: Callable[[str], None]) -> None:
        """folder: an existing one, or None for a fresh one in `.run`. report: takes what an installation prints."""
        self.folder = ServerFolder(name, folder)
        self.report = report

    @abstractmethod
    def start(self) -> Self: ...

    @property
    def log(self) -> Path:
        return self.folder.path / "server.log"

    def close(self, *, keep: bool = False) -> None:
        self.kill()
        self.folder.close(keep=keep)
