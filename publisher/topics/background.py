"""Runs a call to a server in a thread that the program's end does not wait for."""

from __future__ import annotations

from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def begin_call(call: Callable[[], T], name: str) -> Future[T]:
    """Begin the call in a daemon thread with this name. An executor's threads are joined when Python ends: a stop would
    last as long as the server's time limit.
    """
    future: Future[T] = Future()
    Thread(target=_complete, args=(future, call), name=name, daemon=True).start()
    return future


def _complete(future: Future[T], call: Callable[[], T]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - whoever takes the result gets it
        future.set_exception(error)
    else:
        future.set_result(result)
