"""Calls to the checkpoint location, which may hang, in threads that the caller does not wait for too long."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_MAX_IDLE = 32  # threads that wait for a call


class _Caller(Thread):
    """A thread that runs one call after another. One that hangs ends with the process."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="checkpoint location")
        self.calls = SimpleQueue[tuple[Future[Any], "Callable[[], Any]"]]()

    def run(self) -> None:
        while self._run_call(*self.calls.get()):
            pass

    def _run_call(self, future: Future[Any], call: Callable[[], Any]) -> bool:
        """Whether another call may follow. The thread counts as idle once the caller can see the result."""
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:  # noqa: BLE001 - raised again in the caller's thread
            error = raised
        is_kept = len(_idle) < _MAX_IDLE
        if is_kept:
            _idle.append(self)
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
        return is_kept


_idle: deque[_Caller] = deque()
os.register_at_fork(after_in_child=_idle.clear)  # a child has none of its parent's threads


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Begin the call at once, in another thread. The process may end before it returns."""
    future = Future[T]()
    try:
        thread = _idle.pop()
    except IndexError:
        thread = _Caller()
        thread.start()
    thread.calls.put((future, call))
    return future


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """The call's result. CdcError(CHECKPOINT_LOCATION), as for an unreachable location, if it does not return in time:
    it then continues in a background thread.
    """
    future = in_thread(call)
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the call's own, or the result has come just now
            return future.result()
        raise no_answer(seconds, what) from None


def no_answer(seconds: float, what: str) -> CdcError:
    """The error of a call that did not return in time."""
    return CdcError(
        Code.CHECKPOINT_LOCATION,
        f"The checkpoint location does not answer: {what} has taken longer than {seconds:.0f} s.",
        "Make the location reachable for all workers; the job retries. If it is only slow, raise "
        "transaction_timeout_seconds.",
    )
