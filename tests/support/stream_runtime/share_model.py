"""A model of shares: workers that believe in different definitions commit through a Kafka in memory, step by step.

Each request to Kafka is a step. A seed decides which worker takes the next step, so that everything may happen between
two steps of one worker. A worker may end at any step, as if it were killed.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from stream_runtime.exactly_once.commits import StoredOffset
from stream_runtime.kafka import commits
from stream_runtime.kafka.commits import KafkaCommits
from stream_runtime.records import Message, Share, SourcePartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import pytest

PARTITIONS = tuple(SourcePartition("source", number) for number in range(3))
MESSAGES = 4  # of each partition
DEFINITIONS: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((0, 1, 2),),
    ((0,), (1,), (2,)),
    ((0, 1), (2,)),
    ((0,), (1, 2)),
)
"""Ways in which the partitions may be divided into shares."""


class FencedError(Exception):
    """Another producer of the name is newer."""


class KilledError(BaseException):
    """The end of a worker."""


class Steps:
    """Lets one worker at a time take a step."""

    def __init__(self, seed: int, kill_chance: float) -> None:
        self._random = random.Random(seed)
        self._kill_chance = kill_chance
        self._may_go: dict[str, threading.Semaphore] = {}
        self._has_stopped = threading.Semaphore(0)
        self._killed: set[str] = set()
        self._ended: set[str] = set()

    def take(self) -> None:
        """Called by a worker before each request. KilledError if it ends here."""
        name = threading.current_thread().name
        if name not in self._may_go:
            return  # the one that finishes all work alone
        self._has_stopped.release()
        self._may_go[name].acquire()
        if name in self._killed:
            raise KilledError

    def run(self, workers: Mapping[str, Callable[[], None]]) -> None:
        """Run all workers to their ends."""
        self._may_go = {name: threading.Semaphore(0) for name in workers}
        threads = {
            name: threading.Thread(target=self._run_worker, args=(name, work), name=name)
            for name, work in workers.items()
        }
        for thread in threads.values():
            thread.start()
        waiting = sorted(threads)
        while waiting:
            name = self._random.choice(waiting)
            if self._random.random() < self._kill_chance:
                self._killed.add(name)
            self._may_go[name].release()
            self._has_stopped.acquire()  # at its next step, or at its end
            if name in self._ended:
                threads[name].join()
                waiting.remove(name)

    def _run_worker(self, name: str, work: Callable[[], None]) -> None:
        self._may_go[name].acquire()
        try:
            work()
        except KilledError:
            pass
        finally:
            self._ended.add(name)
            self._has_stopped.release()


class Kafka:
    """The offsets of one group, transactions that fence each other, and one target topic."""

    consumer: Any = None

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.offsets: dict[SourcePartition, StoredOffset] = {}
        self.messages: list[Message] = []
        self.epochs: dict[str, int] = {}

    def stored(self, partitions: Collection[SourcePartition]) -> Mapping[SourcePartition, StoredOffset | None]:
        self.steps.take()
        return {partition: self.offsets.get(partition) for partition in partitions}

    def producer(self, _settings: object, _group: str, name: str, *_: object) -> Producer:
        return Producer(self, name)


class Producer:
    """stream_runtime.kafka.FencingProducer."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        kafka.steps.take()
        self._kafka = kafka
        self._name = name
        self._epoch = kafka.epochs[name] = kafka.epochs.get(name, 0) + 1
        self._messages: list[Message] = []
        self._offsets: dict[SourcePartition, StoredOffset] = {}

    def begin(self) -> None:
        self._messages, self._offsets = [], {}

    def send(self, message: Message) -> None:
        self._messages.append(message)

    def send_offsets(self, offsets: Mapping[SourcePartition, StoredOffset]) -> None:
        self._offsets.update(offsets)

    def commit(self) -> None:
        self._kafka.steps.take()
        if self._kafka.epochs[self._name] != self._epoch:
            raise FencedError
        self._kafka.messages += self._messages
        self._kafka.offsets |= self._offsets

    def abandon(self) -> None: ...


class Copied(NamedTuple):
    """A message that came out."""

    partition: int
    offset: int


class Run:
    """Some workers copy the messages of all partitions. Each opens shares of one definition after another."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch, workers: int = 3, kill_chance: float = 0.01) -> None:
        self._random = random.Random(f"choices of {seed}")
        self._steps = Steps(seed, kill_chance)
        self.kafka = Kafka(self._steps)
        patch.setattr(commits, "FencingProducer", self.kafka.producer)
        self._workers = workers

    def run(self) -> None:
        """Run the workers, and then one more alone, which finishes what is left."""
        choices = {
            f"worker {number}": [self._random.choice(DEFINITIONS) for _ in range(4)] for number in range(self._workers)
        }
        self._steps.run({name: _Worker(self.kafka, chosen).work for name, chosen in choices.items()})
        _Worker(self.kafka, [self._random.choice(DEFINITIONS)]).work()

    def copied(self) -> list[Copied]:
        return [Copied(message.partition, int(message.key)) for message in self.kafka.messages]

    def check(self) -> None:
        """Check that each message came out once, in the order of its partition."""
        for number in range(len(PARTITIONS)):
            offsets = [offset for partition, offset in self.copied() if partition == number]
            assert offsets == list(range(MESSAGES)), f"partition {number}: {offsets}"


class _Worker:
    def __init__(self, kafka: Kafka, definitions: list[tuple[tuple[int, ...], ...]]) -> None:
        self._kafka = kafka
        self._definitions = definitions

    def work(self) -> None:
        for definition in self._definitions:
            for numbers in definition:
                try:
                    self._copy(numbers)
                except FencedError:
                    continue

    def _copy(self, numbers: tuple[int, ...]) -> None:
        """Copy all messages of a share, one of each partition in a turn."""
        parts = tuple(PARTITIONS[number] for number in numbers)
        share = Share("source", parts, str(parts[0]) if len(parts) == 1 else f"source/{numbers}")
        opened = KafkaCommits(self._settings(), "group", share, self._kafka, first_offset=_first_offset)
        offsets = {part: 0 if stored is None else stored.offset for part, stored in opened.read().items()}
        while any(offset < MESSAGES for offset in offsets.values()):
            for part, offset in offsets.items():
                if offset < MESSAGES:
                    opened.send(Message("target", part.partition, b"%d" % offset, b""))
                    opened.commit({part: StoredOffset(offset + 1, "{}")})
                    offsets[part] = offset + 1

    def _settings(self) -> Any:  # noqa: ANN401 - no producer needs any
        return None


def _first_offset(_partition: SourcePartition) -> StoredOffset:
    return StoredOffset(0, "{}")
