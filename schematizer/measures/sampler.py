"""Measures topics in a thread of its own. Pages read what was measured last: they never wait for Kafka."""

from __future__ import annotations

from collections import deque
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Protocol, Self

import structlog

from schematizer.measures.measured import Measured, Sample, measured
from schematizer.measures.offsets import OffsetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

STALE_PERIODS = 4
_KEPT = 5
_STOP_SECONDS = 2.0


class Measures(Protocol):
    """The measurements, as pages ask for them."""

    def of(self, topic: str) -> Measured | None:
        """Return the topic's measures; None if they are unknown."""
        ...

    @property
    def problem(self) -> str | None:
        """Why everything is unknown; None if it is not."""
        ...


def lags_of(measures: Measures) -> Callable[[str], Mapping[str, int]]:
    """The lags of a topic by consumer group; none where they are unknown."""

    def of(topic: str) -> Mapping[str, int]:
        found = measures.of(topic)
        return {} if found is None else found.lags

    return of


class NoMeasures:
    """Measures nothing: the registry knows no Kafka."""

    problem = "kafka.bootstrap_servers is not set, so Watson does not ask Kafka."

    def of(self, topic: str) -> Measured | None:  # noqa: ARG002 - as of Measures
        return None


class Asked(Protocol):
    """The interface of measures.offsets.Offsets. OffsetsError if it fails."""

    def sample(self, topics: Collection[str]) -> Sample: ...


class Sampler:
    """Take a sample every `period` seconds in a thread, as a context. Rates are means over the last few samples. What
    is older than STALE_PERIODS is unknown.
    """

    def __init__(self, offsets: Asked, topics: Callable[[], Collection[str]], period: float) -> None:
        self._offsets = offsets
        self._topics = topics
        self._period = period
        self._lock = Lock()
        self._samples: deque[Sample] = deque(maxlen=_KEPT)
        self._measured: dict[str, Measured] = {}
        self._problem: str | None = "Nothing has been measured yet."
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(_STOP_SECONDS)  # it may wait for Kafka; the process ends without it

    def of(self, topic: str) -> Measured | None:
        with self._lock:
            return None if self._is_stale() else self._measured.get(topic)

    @property
    def problem(self) -> str | None:
        with self._lock:
            return self._problem or ("The last measurement is too old." if self._is_stale() else None)

    def measure(self) -> None:
        """Take a sample now."""
        try:
            sample = self._offsets.sample(self._topics())
        except OffsetsError as error:
            self._failed(f"Kafka does not answer: {error}")
            return
        with self._lock:
            self._samples.append(sample)
            first = self._samples[0] if len(self._samples) > 1 else None
            self._measured = measured(first, sample)
            self._problem = None

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self.measure()
            except Exception as error:  # noqa: BLE001 - the thread goes on: the next sample may succeed
                structlog.get_logger(__name__).exception("measuring topics failed", error=type(error).__name__)
                self._failed("Measuring failed; the registry's log says why.")
            self._stopped.wait(self._period)

    def _failed(self, problem: str) -> None:
        """Logged once for each new reason."""
        with self._lock:
            is_new, self._problem = self._problem != problem, problem
        if is_new:
            structlog.get_logger(__name__).warning("topics cannot be measured", reason=problem)

    def _is_stale(self) -> bool:
        return not self._samples or monotonic() - self._samples[-1].seconds > STALE_PERIODS * self._period
