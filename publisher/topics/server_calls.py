"""Calls to Cassandra, Kafka and the registry, which may be unreachable for a while. The publisher stays responsive."""

from __future__ import annotations

from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from cdc_common.errors.codes import CdcError, Code
from publisher.topics.background import begin_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.progress import Progress
    from publisher.waits import Waits

RETRY_SECONDS = 0.5
BACKGROUND_POLL_SECONDS = 0.02  # most calls in the background return at once
_UNREACHABLE = frozenset({Code.CASSANDRA_UNREACHABLE, Code.KAFKA_UNREACHABLE, Code.REGISTRY_UNREACHABLE})

T = TypeVar("T")


class ServerCalls:
    """Each method waits for a server. The status shows the problem during this time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def retry_while_unreachable(self, work: Callable[[], Waits[T]]) -> Waits[T]:
        """Repeat the work while one of the servers is unreachable: reading waits, and no change is lost."""
        has_waited = False
        while True:
            try:
                result = yield from work()
                break
            except CdcError as error:
                if error.code not in _UNREACHABLE:
                    raise
                self._progress.report_problem(monotonic(), error, inf)
            has_waited = True
            yield RETRY_SECONDS
        if has_waited:
            self._progress.clear_problem()
        return result

    def run_in_background(self, call: Callable[[], T]) -> Waits[T]:
        """Run a call to Kafka in a thread: an unreachable server takes the whole connection timeout. The status shows
        that the publisher waits before that time is over.
        """
        began = monotonic()
        running = begin_call(call, "server-call")
        while not running.done():
            yield BACKGROUND_POLL_SECONDS
            self._progress.note_silence(monotonic(), began)
        return running.result()

    def call_while_unreachable(self, call: Callable[[], T]) -> Waits[T]:
        """Retry a call that does not wait itself, as retry_while_unreachable does."""
        return self.retry_while_unreachable(partial(_do_at_once, call))


def _do_at_once(call: Callable[[], T]) -> Waits[T]:
    yield from ()
    return call()
