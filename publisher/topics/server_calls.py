"""Calls to Cassandra, Kafka and the registry, which may be unreachable for a while. The publisher stays responsive."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.progress import Progress
    from publisher.upkeep.housekeeping import Housekeeping

RETRY_SECONDS = 0.5
BACKGROUND_POLL_SECONDS = 0.02  # most calls in the background return at once
_UNREACHABLE = frozenset({Code.CASSANDRA_UNREACHABLE, Code.KAFKA_UNREACHABLE, Code.REGISTRY_UNREACHABLE})

T = TypeVar("T")


class ServerCalls:
    """Does the housekeeping while it waits for a server."""

    def __init__(self, housekeeping: Housekeeping, progress: Progress) -> None:
        self._housekeeping = housekeeping
        self._progress = progress

    def retry_while_unreachable(self, call: Callable[[], T]) -> T:
        """Repeat the call while one of the servers is unreachable: reading waits, and no change is lost."""
        has_waited = False
        while True:
            try:
                result = call()
                break
            except CdcError as error:
                if error.code not in _UNREACHABLE:
                    raise
                self._progress.report_problem(monotonic(), error, inf)
            has_waited = True
            self._housekeeping.serve(RETRY_SECONDS)
        if has_waited:
            self._progress.clear_problem()
        return result

    def run_in_background(self, call: Callable[[], T]) -> T:
        """Run the call in a thread: an unreachable server takes the whole connection timeout."""
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(call)
            while not running.done():
                self._housekeeping.serve(BACKGROUND_POLL_SECONDS)
            return running.result()
