"""Measures the lag of each share in a thread of its own, and how long Kafka keeps its unread messages."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka import GroupPositions, Retention, Topics, driver_errors, read_timestamps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import TracebackType

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import Share, SourcePartition

_logger = structlog.get_logger(__name__)
_ROUND_SECONDS = 30.0
_BEHIND_MS = 120_000  # age of unread messages above which it is measured how long Kafka keeps them
_FETCH_SECONDS = 10.0


class Lag(NamedTuple):
    """The lag of a share."""

    # The committed offset; None if it cannot be read, or if the share has several partitions.
    offset: int | None
    # How many messages are not processed yet.
    messages: int
    # The earliest time (s since 1970) at which Kafka deletes the first of them by the topic's retention.ms. Kafka
    # deletes whole segments, so it may be later. Infinite if time deletes nothing; None if there is no such message or
    # if it is not measured.
    kept_until: float | None = None
    # Whether the first of them is deleted already.
    is_lost: bool = False
    # Whether retention.bytes may delete it earlier.
    has_max_bytes: bool = False
    # The broker's time of the first of them (s since 1970), where messages wait for minutes.
    since: float | None = None

    def seconds_left(self, now: float) -> float | None:
        """Seconds until the first unread message may be deleted; 0 if it may be now. None or infinite as
        `kept_until`.
        """
        if self.is_lost:
            return 0.0
        return None if self.kept_until is None else max(0.0, self.kept_until - now)


class Committed(Protocol):
    """A committed position, as far as it is needed here."""

    @property
    def offset(self) -> int: ...


class Unread(Protocol):
    """UnreadKafka: the offsets of one consumer group."""

    def positions(
        self, partitions: Sequence[SourcePartition], /
    ) -> Mapping[SourcePartition, Committed | CdcError | None]:
        """The committed positions: None if there is none, an error where it cannot be read."""
        ...

    def bounds(self, partitions: Sequence[SourcePartition], /) -> dict[SourcePartition, tuple[int, int]]:
        """Return the bounds of these source partitions. Those that are left out are not measured."""
        ...

    def offsets_at(self, partitions: Sequence[SourcePartition], timestamp_ms: int, /) -> dict[SourcePartition, int]: ...

    def retention(self, topic: str, /) -> Retention: ...

    def timestamps(self, offsets: Mapping[SourcePartition, int], /) -> dict[SourcePartition, int]: ...


class UnreadKafka:
    """Answers the questions of LagWatch. CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED."""

    def __init__(
        self, settings: KafkaSettings, group: str, faults: Faults = NEUTRAL_FAULTS, topics: Topics | None = None
    ) -> None:
        """topics: to ask, where several groups share a client."""
        self._settings = settings
        self._group = group
        self._topics = Topics(settings) if topics is None else topics
        self._positions = GroupPositions(settings, group, faults, stable=False)

    def positions(self, partitions: Sequence[SourcePartition]) -> Mapping[SourcePartition, Committed | CdcError | None]:
        with driver_errors(f"read the offsets of the group {self._group}"):
            return self._positions.read_each(partitions)

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        return self._topics.bounds(partitions)

    def offsets_at(self, partitions: Sequence[SourcePartition], timestamp_ms: int) -> dict[SourcePartition, int]:
        return self._topics.offsets_at(partitions, timestamp_ms)

    def retention(self, topic: str) -> Retention:
        return self._topics.retention(topic)

    def timestamps(self, offsets: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
        return read_timestamps(self._settings, offsets, _FETCH_SECONDS)


class UnreadTopics(UnreadKafka):
    """Of a job whose topics may go away or be recreated: neither hides the lag of the others."""

    def positions(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, StoredOffset | None]:
        """The committed offsets, whatever is committed beside them."""
        with driver_errors(f"read the offsets of the group {self._group}"):
            return self._positions.stored(partitions)

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        """The bounds of partitions whose topics exist."""
        counts = self._topics.partition_counts()
        return super().bounds([partition for partition in partitions if partition.topic in counts])


class LagWatch:
    """Measures every 30 s between `__enter__` and `__exit__`. A failure is logged, and the last figures stay.

    latest: the figures, which another thread may read. measured_at: when they were measured (s since 1970), or None.
    """

    def __init__(self, connect: Callable[[str], Unread], stopped: Callable[[], Collection[Share]]) -> None:
        """connect: to the consumer group of a reader (Share.reader)."""
        self.latest: dict[Share, Lag] = {}
        self.measured_at: float | None = None
        self._connect = connect
        self._kafka: dict[str, Unread] = {}
        self._stopped = stopped
        self._shares: Sequence[Share] = ()
        self._end = threading.Event()
        self._wake = threading.Event()

    def __enter__(self) -> Self:
        threading.Thread(target=self._run, name="lag", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._wake.set()

    def set_shares(self, shares: Sequence[Share]) -> None:
        """Measure these from the next round on."""
        self._shares = shares

    def measure_soon(self) -> None:
        """Do not wait for the next round: a share has stopped."""
        self._wake.set()

    def measure(self) -> None:
        """One round. CdcError KAFKA_UNREACHABLE or KAFKA_REFUSED."""
        of_reader: dict[str, list[Share]] = defaultdict(list)
        for share in self._shares:
            of_reader[share.reader].append(share)
        stopped = {partition for share in self._stopped() for partition in share.partitions}
        found: dict[Share, Lag] = {}
        for reader, shares in of_reader.items():
            partitions = [partition for share in shares for partition in share.partitions]
            lags = _measure(self._unread(reader), partitions, stopped)
            found |= {
                share: _together([lags[partition] for partition in share.partitions])
                for share in _measured(shares, lags)
            }
        self.latest = found
        self.measured_at = time.time()

    def _unread(self, reader: str) -> Unread:
        if reader not in self._kafka:
            self._kafka[reader] = self._connect(reader)
        return self._kafka[reader]

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                self.measure()
            except CdcError as error:
                _logger.warning("lag not measured", code=error.code.text, problem=error.problem)
            except Exception as error:  # noqa: BLE001 - batches go on, and the age of the figures shows it
                _logger.error("lag not measured", trace=trace_of(error))  # noqa: TRY400 - its text may hold values
            self._wake.wait(_ROUND_SECONDS)
            self._wake.clear()


def _measure(
    kafka: Unread, partitions: Sequence[SourcePartition], stopped: Collection[SourcePartition]
) -> dict[SourcePartition, Lag]:
    positions = kafka.positions(partitions)
    bounds = kafka.bounds(partitions)
    old = kafka.offsets_at(list(bounds), int(time.time() * 1000) - _BEHIND_MS)
    found = {partition: _lag(positions[partition], *bound) for partition, bound in bounds.items()}
    behind = {
        partition: lag.offset
        for partition, lag in found.items()
        if lag.offset is not None
        and lag.messages
        and not lag.is_lost
        and (partition in stopped or not 0 <= old[partition] <= lag.offset)
    }
    if behind:
        retentions = {topic: kafka.retention(topic) for topic in {partition.topic for partition in behind}}
        for partition, timestamp in kafka.timestamps(behind).items():
            found[partition] = _with_retention(found[partition], timestamp, retentions[partition.topic])
    return found


def _measured(shares: Sequence[Share], lags: Mapping[SourcePartition, Lag]) -> list[Share]:
    """The shares all of whose partitions are measured."""
    return [share for share in shares if lags.keys() >= set(share.partitions)]


def _together(lags: Sequence[Lag]) -> Lag:
    """The lag of a share from those of its partitions."""
    if len(lags) == 1:
        return lags[0]
    return Lag(
        None,
        sum(lag.messages for lag in lags),
        min((lag.kept_until for lag in lags if lag.kept_until is not None), default=None),
        any(lag.is_lost for lag in lags),
        any(lag.has_max_bytes for lag in lags),
        min((lag.since for lag in lags if lag.since is not None), default=None),
    )


def _lag(position: Committed | CdcError | None, first: int, following: int) -> Lag:
    if isinstance(position, CdcError):
        return Lag(None, following - first)
    offset = 0 if position is None else position.offset
    return Lag(offset, max(0, following - offset), is_lost=offset < first)


def _with_retention(lag: Lag, timestamp_ms: int, retention: Retention) -> Lag:
    until = math.inf if retention.milliseconds is None else (timestamp_ms + retention.milliseconds) / 1000
    return lag._replace(kept_until=until, has_max_bytes=retention.has_max_bytes, since=timestamp_ms / 1000)
