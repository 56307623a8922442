"""Finds raw topics in a thread: a registry or broker that does not answer keeps no other table waiting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from publisher.topics.background import begin_call

if TYPE_CHECKING:
    from concurrent.futures import Future

    from publisher.tables.published_table import PublishedTable
    from publisher.topics.raw_topics import FoundTopic, RawTopics


class TopicOpener:
    """Finds one topic at a time. `table`: the one that is being looked for; None while it is idle."""

    def __init__(self, raw_topics: RawTopics) -> None:
        self._raw_topics = raw_topics
        self._future: Future[FoundTopic] | None = None
        self.table: PublishedTable | None = None

    def begin(self, table: PublishedTable) -> None:
        """Look for the table's topic. Only while it is idle."""
        assert self.table is None
        self.table = table
        self._future = begin_call(partial(self._raw_topics.find_topic, table), "topics")

    @property
    def is_done(self) -> bool:
        """Return whether `take` returns at once."""
        return self._future is not None and self._future.done()

    def take(self) -> FoundTopic:
        """The topic that was looked for. Waits for it; TableError. It is idle then."""
        assert self._future is not None
        future, self._future, self.table = self._future, None, None
        return future.result()
