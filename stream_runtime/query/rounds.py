"""The driver's rounds: a service that tells Spark's processes which round it is, and what each is to do in it.

Bound to the driver's host. Both sides prove that they know the key (multiprocessing.connection: an HMAC of a random
challenge), which reaches the processes inside the pickled data source.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Listener, answer_challenge, deliver_challenge
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_runtime.query.claims import Claims
from stream_runtime.query.task_pickle import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.connection import Connection

    from stream_runtime.worker.task import Assignment, Task, TaskResult, WorkerStatus

_BACKLOG = 256
_KEY_BYTES = 32
_CHECK_SECONDS = 0.5
_NEXT_SECONDS = 5.0  # for which Spark's request for the next round waits
_PROBE_SECONDS = 10  # between two probes of a connection on which nothing comes
_PROBES = 3  # without an answer, after which the process's machine is gone


class ServiceAddress(NamedTuple):
    """The address of the service of rounds."""

    # Its host.
    host: str
    # Its port.
    port: int
    # The key that both sides must know.
    key: bytes


class Rounds:
    """One round after another: assignments go out, results come in.

    A process that is connected is a live one. Its assignment is free again when its connection ends. TCP probes the
    connection, since a machine that loses its power or its network does not end it.

    A process whose time is over folds on while another one needs longer, so that none waits for the slowest. The round
    ends when the time of all of them is over.
    """

    def __init__(self, host: str, bind: str, known: Sequence[object] = ()) -> None:
        """host: the driver's name for Spark's processes. bind: its address. known: as task_pickle's."""
        self._known = known
        self._listener = Listener((bind, 0), backlog=_BACKLOG)
        self.address = ServiceAddress(host, self._listener.address[1], os.urandom(_KEY_BYTES))
        self._changed = threading.Condition()
        self._claims = Claims()
        self._number = 0
        self._planned = 0
        self._is_open = False
        self._is_ending = False
        self._is_closed = False
        self._is_idle = False
        self._slots = 1
        self._opened = 0.0
        self._until = 0.0
        self._load = 0.0
        self._behind: set[object] = set()
        self._restoring: set[object] = set()
        self._task = b""
        self._task_version = 0
        self._positions: dict[str, dict[str, int]] = {}
        self._results: list[TaskResult] | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def list_workers(self, slots: int, *, exactly: bool = False) -> list[str]:
        """Claims.list_workers; `slots` is also the number of the next round's tasks, at least.

        exactly: there are to be that many workers and tasks, and no more.
        """
        with self._changed:
            workers = self._claims.list_workers(slots, exactly=exactly)
            self._slots = max(slots, len(workers))
            return workers

    @property
    def processes(self) -> int:
        """Return how many workers have a live process."""
        with self._changed:
            return self._claims.processes

    @property
    def is_behind(self) -> bool:
        """Whether a process has messages of several shares left although its time is over, in this round."""
        with self._changed:
            return bool(self._behind)

    @property
    def load(self) -> float:
        """Return how many processes folded on average in the last round, or restored a state at its end."""
        with self._changed:
            return self._load

    def run(
        self,
        task: Task,
        assignments: Mapping[str, Assignment],
        check: Callable[[], None],
        seconds: float = 0.0,
        is_cut: Callable[[], bool] = lambda: False,
    ) -> list[TaskResult]:
        """The results of a round. `check` raises if they will never come.

        seconds: how long the round lasts at least, if `is_cut` does not say that it is to end. It ends early while some
        worker has no process, or some process no assignment.
        """
        self._open(dumps(task, self._known), assignments, seconds)
        try:
            while True:
                with self._changed:
                    if self._changed.wait_for(lambda: self._results is not None, _CHECK_SECONDS):
                        break
                check()
                if is_cut():
                    with self._changed:
                        self._is_ending = True
        finally:
            with self._changed:
                self._is_open = False
        with self._changed:
            self._claims.end()
            assert self._results is not None
            folding = _seconds(self._results) / max(_CHECK_SECONDS, time.monotonic() - self._opened)
            self._load = folding + len(self._restoring)
            return self._results

    def deliver(self, results: Sequence[TaskResult]) -> None:
        """The results of the round that Spark has planned last, by its query's thread. Others count for nothing."""
        with self._changed:
            if not self._is_open or self._planned != self._number:
                return
            self._results = list(results)
            for result in results:
                if result.report is not None and result.report.chunks:
                    self._positions.setdefault(result.share.stream, {})[result.share.number] = result.report.end
            self._changed.notify_all()

    def close(self) -> None:
        """No more rounds."""
        with self._changed:
            self._is_closed = True
            self._is_idle = False
            self._changed.notify_all()
        self._listener.close()

    def wait_until_idle(self, seconds: float) -> bool:
        """Wait at most `seconds` for Spark to ask for another round, which means that the last one has ended. Return
        whether it has asked. Call it after `close`.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._is_idle, seconds)

    def _open(self, task: bytes, assignments: Mapping[str, Assignment], seconds: float) -> None:
        with self._changed:
            if task != self._task:
                self._task = task
                self._task_version += 1
            self._claims.begin(assignments)
            self._number += 1
            self._results = None
            self._opened = time.monotonic()
            self._until = self._opened + (seconds if self._claims.is_settled else 0.0)
            self._behind.clear()
            self._restoring.clear()
            self._is_ending = False
            self._is_open = True
            self._changed.notify_all()

    def _accept(self) -> None:
        while not self._is_closed:
            with suppress(OSError):
                connection = self._listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        """Answer one process until its connection ends."""
        key = self.address.key
        with connection, suppress(EOFError, OSError, AuthenticationError):
            _probe(connection)
            deliver_challenge(connection, key)
            answer_challenge(connection, key)
            try:
                while True:
                    kind, *arguments = connection.recv()
                    connection.send(getattr(self, f"_answer_{kind}")(connection, *arguments))
            finally:
                with self._changed:
                    self._claims.leave(connection)

    def _answer_next(self, _connection: object, after: int) -> tuple[int, dict[str, dict[str, int]]]:
        """The number of the round after this one, once it is open, and the positions before it."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or (self._is_open and self._number > after), _NEXT_SECONDS)
            is_next = self._is_open and self._number > after
            if self._is_closed:
                self._is_idle = True
                self._changed.notify_all()
            return self._number if is_next else after, self._positions

    def _answer_plan(self, _connection: object, number: int) -> int:
        """Return how many tasks Spark is to start for the round. Spark may ask more than once."""
        with self._changed:
            self._planned = number
            return self._slots

    def _answer_claim(
        self, connection: object, number: int, known_version: int
    ) -> tuple[Assignment | None, int, bytes | None]:
        """The assignment, the version of the task, and the task if the process does not have this version."""
        with self._changed:
            is_current = self._is_open and number == self._number
            assignment = self._claims.claim(connection) if is_current else None
            if not self._claims.is_settled:  # it has no assignment: it gets one in the next round, soon
                self._until = 0.0
            if assignment is not None and self._is_ending:  # it comes late, and all others wait for it
                assignment = assignment._replace(seconds=0.0)
            version = self._task_version
            return assignment, version, None if assignment is None or version == known_version else self._task

    def _answer_release(self, connection: object) -> None:
        with self._changed:
            self._claims.release(connection)

    def _answer_over(self, connection: object, number: int, status: WorkerStatus) -> bool:
        """The time of the process is over. Whether it is to fold on for a while. A failure is reported soon."""
        with self._changed:
            if not self._is_open or number != self._number:
                return False
            self._claims.finish(connection)
            if status.is_behind:
                self._behind.add(connection)
            (self._restoring.add if status.is_restoring else self._restoring.discard)(connection)
            if status.has_failed:
                self._until = 0.0
            if self._claims.all_finished and time.monotonic() >= self._until:
                self._is_ending = True
            return not self._is_ending


def _probe(connection: Connection[Any, Any]) -> None:
    """Let TCP end the connection if the other machine is gone."""
    with socket.socket(fileno=os.dup(connection.fileno())) as tcp:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _PROBE_SECONDS)
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _PROBE_SECONDS)
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
        # For an answer that the other machine has not confirmed: TCP would send it again for a quarter of an hour.
        tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * _PROBE_SECONDS * (_PROBES + 1))


def _seconds(results: Sequence[TaskResult]) -> float:
    """The seconds that folding has taken."""
    return sum(result.report.seconds for result in results if result.report is not None)
