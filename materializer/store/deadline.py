"""Calls to the checkpoint location, which may hang, with a deadline."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """The call's result. CdcError(CHECKPOINT_LOCATION), as for an unreachable location, if it does not return in time:
    it then continues in a background thread.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name=what)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise CdcError(
            Code.CHECKPOINT_LOCATION,
            f"The checkpoint location does not answer: {what} has taken longer than {seconds:.0f} s.",
            "Make the location reachable for all workers; the materializer retries. If it is only slow, raise "
            "materializer.transaction_timeout_seconds.",
        )
    if raised:
        raise raised[0]
    return returned[0]
