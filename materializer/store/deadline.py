"""A call to the checkpoint location, which may hang, given up after a while."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """What it returns; CdcError(CHECKPOINT_LOCATION), as from a location that is away, if it is not back in time. It
    then goes on in a thread that nobody waits for.
    """
    returned: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True, name=what)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise CdcError(
            Code.CHECKPOINT_LOCATION,
            f"The checkpoint location does not answer: {what} has taken longer than {seconds:.0f} s.",
            "Make the location reachable for all workers; it is tried again until then. If it is only slow, raise "
            "materializer.transaction_timeout_seconds.",
        )
    if raised:
        raise raised[0]
    return returned[0]
