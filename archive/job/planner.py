"""Plans each batch on the driver: which topics there are, and their shares."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from archive.faults import ARCHIVE_FAULTS, location_taken
from archive.files import check_store, open_store
from archive.job.plan import DEAD_LETTER_BYTES, EVENT_BYTES, ArchivePlan, Stream, list_shares
from archive.job.worker_loop import ArchiveTask
from archive.table_names import main_table
from archive.topic_settings import file_fields
from cdc_common.errors.codes import CdcError
from cdc_native import is_enabled
from stream_runtime.driver.file_topics import FileChosenTopics, FileTopics
from stream_runtime.kafka import Topics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from archive.job.plan import Job
    from archive.records import Definition
    from stream_runtime.records import Share

_OWNER = "_archive/group"
_KIND = "archive"
"""Of the registry's notes about topic files."""


class TopicPlanner(FileChosenTopics):
    """stream_runtime.driver.driver.Plans."""

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        self._topics = Topics(job.kafka)
        files = FileTopics(job.registry, job.settings.deployment, _KIND)
        super().__init__(self._topics, job.settings, ARCHIVE_FAULTS, clock, files)
        self._job = job
        self._events = 1
        self._compacted: dict[str, bool] = {}
        self._definitions: dict[str, Definition] = {}

    def plan_batch(self) -> ArchivePlan:
        """CdcError for what concerns the whole job. KAFKA_UNREACHABLE is temporary."""
        shapes = self.find_shapes()
        self._ask_compaction(shapes.keys() - self._compacted.keys() - self.errors.keys())
        size = self._job.settings.partitions_per_share
        streams = {
            topic: Stream(shape, self._compacted[topic], self.definition_of(topic))
            for topic, shape in shapes.items()
            if topic in self._compacted
        }
        shares = [
            share for topic, stream in streams.items() for share in list_shares(topic, stream.shape.partitions, size)
        ]
        return ArchivePlan(self._job, streams, self._events, tuple(shares))

    def first_share(self, stream: str) -> Share:
        return list_shares(stream, 1, self._job.settings.partitions_per_share)[0]

    def make_task(self, plan: ArchivePlan) -> ArchiveTask:
        return ArchiveTask(plan)

    def retry(self, streams: Collection[str]) -> None:
        super().retry(streams)
        for topic in streams:
            self._compacted.pop(topic, None)

    def find_topics(self) -> list[str]:
        """The names of the topics that the settings or topic files choose. CdcError if the settings name none."""
        before = self.from_files
        found = super().find_topics()
        if self.from_files != before:
            self._definitions.clear()
        return found

    def is_chosen(self, topic: str) -> bool:
        """The archive's own topics are left out."""
        own = self._job.settings
        if topic in {own.events_topic, own.dead_letter_topic}:
            return False
        return super().is_chosen(topic)

    def definition_of(self, topic: str) -> Definition:
        """How the files of a topic are made now."""
        if topic not in self._definitions:
            from_file = self.from_files.get(topic, {})
            self._definitions[topic] = self._job.settings.definition_of(topic, file_fields(from_file))
        return self._definitions[topic]

    def table_of(self, topic: str) -> str:
        """A schema version of one table, or its erasures, may not have the name of another one."""
        return main_table(self.definition_of(topic).table)

    def check_settings(self) -> None:
        """Raise CdcError if the job cannot run with its settings. Makes the topic of the file events."""
        if not is_enabled():
            raise ARCHIVE_FAULTS.core_missing()
        own = self._job.settings
        self.check_tables()
        self._topics.check_transaction_timeout(own.transaction_timeout_seconds)
        store = open_store(own.location)
        check_store(store)
        store.put_new_bytes(_OWNER, own.group_id.encode())
        owner = (store.read(_OWNER) or b"").decode()
        if owner != own.group_id:
            raise location_taken(own.location, owner, own.group_id)
        self._events = self._topics.make_kept_topic(own.events_topic, EVENT_BYTES).partitions
        if own.sends_dead_letters:
            self._topics.make_kept_topic(own.dead_letter_topic, DEAD_LETTER_BYTES)

    def _ask_compaction(self, topics: Collection[str]) -> None:
        """Ask whether new topics are compacted."""
        if not topics:
            return
        for topic, is_compacted in self._topics.each_is_compacted(sorted(topics)).items():
            if isinstance(is_compacted, CdcError):
                self.errors[topic] = is_compacted
            else:
                self._compacted[topic] = is_compacted
