"""The bases of nodes, brokers, programs and other servers: start, stop, kill, pause, restart."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from cdc_common.errors.codes import CdcError
from dev.local_stack.process.folders import ServerFolder
from dev.local_stack.process.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

P = TypeVar("P", bound=ServerProcess)

START_TRIES = 3


class Restartable(ABC, Generic[P]):
    """One process at a time; what it keeps in files stays when it is stopped or killed, and `start` goes on with it."""

    process: P | None = None
    start_seconds = 300.0  # the longest start on a busy machine
    stop_seconds = 30.0  # the grace of a controlled shutdown

    @abstractmethod
    def launch(self) -> P:
        """Start the process; its output goes to a log file."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Whether the running process works."""

    def start(self) -> Self:
        """Start it, or start it again; returns when it works. Raises CdcError(SERVER_FAILED) with its log's end."""
        self.start_process()
        self.wait_ready()
        return self

    def start_process(self) -> None:
        """Start the process without waiting for it."""
        assert not self.is_running
        if self.process:
            self.process.remove()
        self.process = self.launch()

    def wait_ready(self) -> None:
        """Raises CdcError(SERVER_FAILED) with the log's end after `start_seconds`, and at once if it ends."""
        self._running().wait_ready(self.is_ready, "it was ready", self.start_seconds)

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

    def discard(self) -> None:
        """Kill it and forget the process; its files stay."""
        self.kill()
        if self.process:
            self.process.remove()
            self.process = None

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
    """A context manager: it starts on entry; on exit it ends and its files go, except the logs if something failed."""

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

    @property
    def log(self) -> Path:
        return self.folder.path / "server.log"

    def close(self, *, keep: bool = False) -> None:
        self.discard()
        self.folder.close(keep=keep)


def retry_start(start: Callable[[], object], kill: Callable[[], None], can_retry: Callable[[], bool]) -> None:
    """Call `start`, up to START_TRIES times. After a failed try `kill` is called; `can_retry` prepares the next try, or
    refuses it. Raises the CdcError of the last try.
    """
    for remaining in reversed(range(START_TRIES)):
        try:
            start()
        except CdcError:
            kill()
            if not (remaining and can_retry()):
                raise
        else:
            return
