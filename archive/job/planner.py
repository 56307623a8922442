"""Plans each batch on the driver: which topics there are, and their shares."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from archive.faults import ARCHIVE_FAULTS, core_missing, location_taken, setting_missing, tables_collide
from archive.job.plan import DEAD_LETTER_BYTES, EVENT_BYTES, ArchivePlan, Stream, list_shares
from archive.job.worker_loop import ArchiveTask
from archive.stores.store import open_store
from archive.table_names import same_names
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import matches
from cdc_native import is_enabled
from stream_runtime.kafka import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from archive.job.plan import Job
    from stream_runtime.records import Share, TopicShape

_LOOK_SECONDS = 5.0  # between two looks at the topics
_AWAY_SECONDS = 30.0  # a broker that has just started may not know a topic yet
_OWNER = "_archive/group"


class TopicPlanner:
    """stream_runtime.driver.driver.Plans. A topic with an error is not planned again before `retry`."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self.errors: dict[str, CdcError] = {}
        self._job = job
        self._clock = clock
        self._topics = Topics(job.kafka)
        self._streams: dict[str, Stream] = {}
        self._events = 1
        self._next_look = -1.0
        self._away_since: dict[str, float] = {}

    @property
    def pending(self) -> set[str]:
        """No topic's plan takes time."""
        return set()

    def plan_batch(self) -> ArchivePlan:
        """CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + _LOOK_SECONDS
            self._look()
        size = self._job.settings.partitions_per_share
        shares = [
            share
            for topic, stream in self._streams.items()
            for share in list_shares(topic, stream.shape.partitions, size)
        ]
        return ArchivePlan(self._job, dict(self._streams), self._events, tuple(shares))

    def first_share(self, stream: str) -> Share:
        return list_shares(stream, 1, self._job.settings.partitions_per_share)[0]

    def make_task(self, plan: ArchivePlan) -> ArchiveTask:
        return ArchiveTask(plan)

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these topics again, as they are by then."""
        for topic in streams:
            if self.errors.pop(topic, None) is not None:
                self._streams.pop(topic, None)
            self._next_look = -1.0

    def find_topics(self) -> list[str]:
        """The names of the topics that the settings choose."""
        own = self._job.settings
        if not own.topics:
            raise setting_missing("topics", "it names the topics to archive")
        return [name for name in sorted(self._topics.partition_counts()) if self._is_chosen(name)]

    def check_settings(self) -> None:
        """Raise CdcError if the job cannot run with its settings. Makes the topic of the file events."""
        if not is_enabled():
            raise core_missing()
        own = self._job.settings
        for table, topics in self._collisions(self.find_topics()).items():
            raise tables_collide(table, topics)
        self._topics.check_transaction_timeout(own.transaction_timeout_seconds)
        store = open_store(own.location)
        store.check()
        store.put_new_bytes(_OWNER, own.group_id.encode())
        owner = (store.read(_OWNER) or b"").decode()
        if owner != own.group_id:
            raise location_taken(own.location, owner, own.group_id)
        self._events = self._topics.make_kept_topic(own.events_topic, EVENT_BYTES).partitions
        if own.sends_dead_letters:
            self._topics.make_kept_topic(own.dead_letter_topic, DEAD_LETTER_BYTES)

    def _is_chosen(self, topic: str) -> bool:
        own = self._job.settings
        if topic.startswith("__") or topic in {own.events_topic, own.dead_letter_topic}:
            return False
        return matches(topic, own.topics) and not matches(topic, own.excluded_topics)

    def _collisions(self, topics: list[str]) -> dict[str, list[str]]:
        """Topics that would have the same table, by its name."""
        return same_names({topic: self._job.settings.definition_of(topic).table for topic in topics})

    def _look(self) -> None:
        """Plan topics that are new, and those that have changed."""
        chosen = self.find_topics()
        for table, topics in self._collisions(chosen).items():
            self.errors |= {topic: tables_collide(table, topics) for topic in topics if topic not in self._streams}
        names = {*chosen, *self._streams} - self.errors.keys()
        compacted = self._topics.each_is_compacted(sorted(names - self._streams.keys()))
        for topic, shape in self._topics.each_shape(sorted(names)).items():
            if isinstance(shape, CdcError):
                self._miss(topic, shape)
                continue
            self._away_since.pop(topic, None)
            known = self._streams.get(topic)
            is_compacted = compacted[topic] if known is None else known.is_compacted
            if isinstance(is_compacted, CdcError):
                self.errors[topic] = is_compacted
            else:
                self._take(topic, shape, is_compacted=is_compacted)

    def _take(self, topic: str, shape: TopicShape, *, is_compacted: bool) -> None:
        known = self._streams.get(topic)
        if known is not None and known.shape.topic_id != shape.topic_id:
            self.errors[topic] = ARCHIVE_FAULTS.topic_recreated(topic)
        else:
            self._streams[topic] = Stream(shape, is_compacted)

    def _miss(self, topic: str, error: CdcError) -> None:
        """A topic that cannot be described. One that is away for long is an error: it may have been deleted."""
        is_new = topic not in self._streams
        if is_new and error.code is Code.KAFKA_UNREACHABLE:
            return
        if is_new or self._clock() - self._away_since.setdefault(topic, self._clock()) >= _AWAY_SECONDS:
            self.errors[topic] = error
