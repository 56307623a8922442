"""The consumers of a worker: one for the partitions with messages, and one for idle ones, if there are very many.

Each fetch names all partitions of its consumer, whether they have something or not. So that a busy source partition is
read often and thousands of idle ones cost little, these have a consumer of their own. Its fetches wait long, and end
with the first message. A source partition moves to the other consumer with its first message.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from cdc_common.clients.kafka import client_config
from cdc_common.clients.kafka_errors import is_transient, kafka_error
from cdc_common.errors.codes import CdcError
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.kafka.clients import QUICK, driver_errors
from stream_runtime.kafka.consumers import open_consumer
from stream_runtime.kafka.positions import read_each_position
from stream_runtime.records import Record, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.position import Position

_MEMORY = {
    # librdkafka reads ahead by at most the first value and one fetch response of the second.
    "queued.max.messages.kbytes": 16_384,
    "fetch.max.bytes": 8_388_608,
    "fetch.queue.backoff.ms": 20,
}
SILENT_SECONDS = 30.0  # three times as long as publishers' heartbeats are apart
MOST_BUSY = 64  # source partitions: with more of them, the idle ones are read by a consumer of their own
_IDLE_SECONDS = 60.0  # without a message, after which a source partition is idle
_IDLE_FETCH = {"fetch.min.bytes": 1, "fetch.wait.max.ms": 2000}
_MIN_BYTES = 65_536  # of a fetch response before its wait is over: a trickle of messages is not fetched one by one


class ReadBudget(NamedTuple):
    """The limits of one read."""

    # The number of messages.
    messages: int
    # Bytes of keys and values. The last messages, at most 1,000, may exceed them.
    bytes: int


class Read(NamedTuple):
    """The result of a read."""

    # The messages of each source partition, in the order of their offsets.
    records: dict[SourcePartition, list[Record]]
    # Source partitions whose next offset does not exist any more.
    lost: set[SourcePartition]
    # The errors of source partitions that cannot be read.
    errors: dict[SourcePartition, CdcError]


class RawReader:
    """Reads each of its source partitions from a given offset on. CdcError (KAFKA_UNREACHABLE, KAFKA_REFUSED).

    It uses the group's name to read positions, but never joins the group: the driver assigns the source partitions.
    wait_ms: how long a fetch may wait for more messages.
    """

    def __init__(self, settings: KafkaSettings, group: str, wait_ms: int, faults: Faults = NEUTRAL_FAULTS) -> None:
        self._settings = settings
        self._group = group
        self._faults = faults
        self._wait_ms = wait_ms
        self._next: dict[SourcePartition, int] = {}  # offsets
        self._heard: dict[SourcePartition, float] = {}  # when the last message came
        self._behind: dict[SourcePartition, int] = {}  # those that were behind at the last look, and their next offsets
        self._busy: dict[SourcePartition, float] = {}  # when the last message came
        self._idle: set[SourcePartition] = set()
        self._next_look = 0.0  # for source partitions that have become idle
        self._consumer = self._new_consumer({"fetch.min.bytes": _MIN_BYTES, "fetch.wait.max.ms": wait_ms})
        self._idle_consumer: Any = None

    def _new_consumer(self, fetch: Mapping[str, int]) -> Any:  # noqa: ANN401 - see open_consumer
        return open_consumer(
            {
                **client_config(self._settings),
                **QUICK,
                **_MEMORY,
                "group.id": self._group,
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "isolation.level": "read_uncommitted",  # so that an open transaction does not delay reading positions
                **fetch,
            }
        )

    def positions(self, partitions: Collection[SourcePartition]) -> dict[SourcePartition, Position | CdcError | None]:
        """The committed positions, which an open transaction may still move, as GroupPositions.read_each."""
        with driver_errors(f"read the offsets of the group {self._group}"):
            return read_each_position(self._consumer, partitions, self._faults)

    def add(self, offsets: Mapping[SourcePartition, int]) -> None:
        """Read these source partitions too, from these offsets on."""
        if offsets:
            are_many = len(self._next) + len(offsets) > MOST_BUSY
            with driver_errors("read the source topics"):
                (self._assign_idle if are_many else self._assign_busy)(offsets)
            self._next |= offsets
            self._heard |= dict.fromkeys(offsets, time.monotonic())

    def add_whole(self, partition: SourcePartition) -> None:
        """Read this partition too, from its first message on."""
        with driver_errors(f"read {partition}"):
            self._assign_busy({partition: OFFSET_BEGINNING})
        self._next[partition] = OFFSET_BEGINNING
        self._heard[partition] = time.monotonic()

    def _assign_busy(self, offsets: Mapping[SourcePartition, int]) -> None:
        self._consumer.incremental_assign([TopicPartition(*partition, at) for partition, at in offsets.items()])
        self._busy |= dict.fromkeys(offsets, time.monotonic())

    def _assign_idle(self, offsets: Mapping[SourcePartition, int]) -> None:
        if self._idle_consumer is None:
            self._idle_consumer = self._new_consumer(_IDLE_FETCH)
        self._idle_consumer.incremental_assign([TopicPartition(*partition, at) for partition, at in offsets.items()])
        self._idle |= offsets.keys()

    def _unassign(self, partitions: Iterable[SourcePartition]) -> None:
        busy: list[TopicPartition] = []
        idle: list[TopicPartition] = []
        for partition in partitions:
            (idle if partition in self._idle else busy).append(TopicPartition(*partition))
            self._idle.discard(partition)
            self._busy.pop(partition, None)
        if busy:
            self._consumer.incremental_unassign(busy)
        if idle and self._idle_consumer is not None:
            self._idle_consumer.incremental_unassign(idle)

    def remove(self, partitions: Iterable[SourcePartition]) -> None:
        """Stop reading these source partitions."""
        gone = []
        for partition in partitions:
            if self._next.pop(partition, None) is not None:
                gone.append(partition)
                del self._heard[partition]
                self._behind.pop(partition, None)
        if gone:
            with driver_errors("read the source topics"):
                self._unassign(gone)

    def next_offset(self, partition: SourcePartition) -> int:
        """The offset of the next message that `read` will return."""
        return self._next[partition]

    def close(self) -> None:
        self._consumer.close()
        if self._idle_consumer is not None:
            self._idle_consumer.close()

    def read(self, budget: ReadBudget, seconds: float) -> Read:
        """The messages that arrive in this time. Returns earlier when the budget is spent, and later while full batches
        are available at once.
        """
        read = Read(defaultdict(list), set(), {})
        end = time.monotonic() + seconds
        count = size = of_idle = 0
        consumers = [self._consumer] if self._idle_consumer is None else [self._idle_consumer, self._consumer]
        for consumer in consumers:
            if count >= budget.messages or size >= budget.bytes:
                break
            wait = max(0.0, end - time.monotonic()) if consumer is self._consumer and not of_idle else 0.0
            with driver_errors("read the source topics"):
                polled = consumer.poll_records(budget.messages - count, budget.bytes - size, wait)
                for where, _, error in polled.errors:
                    if where is None or where in self._next:  # otherwise it has just been removed
                        self._add_error(where, error, read)
            for partition, records in polled.records:
                count += len(records)
                if partition in self._next:
                    read.records[partition] += records
            size += polled.size
            of_idle = count if consumer is not self._consumer else of_idle
        now = time.monotonic()
        if count >= budget.messages or size >= budget.bytes:  # more may wait, of any source partition
            self._heard = dict.fromkeys(self._heard, now)
        for partition, records in read.records.items():
            self._next[partition] = records[-1].offset + 1
            self._heard[partition] = now
            if partition in self._busy:
                self._busy[partition] = now
        self._move(read.records.keys() & self._idle, now)
        return read

    def _move(self, woken: Collection[SourcePartition], now: float) -> None:
        """Move source partitions to the consumer that they belong to now. Each is read on from its next offset."""
        tired: list[SourcePartition] = []
        if self._idle and now >= self._next_look:
            self._next_look = now + _IDLE_SECONDS / 10
            tired = [
                partition
                for partition, at in self._busy.items()
                if now - at >= _IDLE_SECONDS and self._next[partition] >= 0
            ]
        with driver_errors("read the source topics"):
            for partitions, assign in ((woken, self._assign_busy), (tired, self._assign_idle)):
                if partitions:
                    self._unassign(partitions)
                    assign({partition: self._next[partition] for partition in partitions})

    def silent(self) -> list[SourcePartition]:
        """The source partitions without a message for SILENT_SECONDS, each once in that time."""
        now = time.monotonic()
        found = [partition for partition, since in self._heard.items() if now - since >= SILENT_SECONDS]
        self._heard |= dict.fromkeys(found, now)
        return found

    def renew_if_stuck(self, ends: Mapping[SourcePartition, int]) -> list[SourcePartition]:
        """Read on with a new consumer if this one does not give what is there (decision 0018).

        ends: the next offset of silent partitions. Those that were behind at two looks, and nothing came between.
        """
        behind = {
            partition: self._next[partition] for partition, end in ends.items() if end > max(0, self._next[partition])
        }
        stuck = [partition for partition, at in behind.items() if self._behind.get(partition) == at]
        self._behind = {partition: at for partition, at in self._behind.items() if partition not in ends} | behind
        if stuck:
            self.close()
            self._consumer = self._new_consumer({"fetch.min.bytes": _MIN_BYTES, "fetch.wait.max.ms": self._wait_ms})
            self._idle_consumer = None
            self._behind = {}
            busy, idle = list(self._busy), list(self._idle)
            with driver_errors("read the source topics"):
                self._assign_busy({partition: self._next[partition] for partition in busy})
                if idle:
                    self._assign_idle({partition: self._next[partition] for partition in idle})
        return stuck

    def _add_error(self, partition: SourcePartition | None, error: KafkaError, read: Read) -> None:
        """An error without a partition is the consumer's: it concerns all source partitions."""
        if error.code() == KafkaError._AUTO_OFFSET_RESET and partition is not None:  # noqa: SLF001
            read.lost.add(partition)
        elif not is_transient(error):
            if partition is None:
                raise KafkaException(error)
            read.errors[partition] = kafka_error(f"Cannot read {partition}", error)
