"""The topics that a job's patterns choose: which are there, which have changed, and which are gone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import matches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from stream_runtime.faults import Faults
    from stream_runtime.records import TopicShape
    from stream_runtime.settings import ChosenTopicsSettings

LOOK_SECONDS = 5.0  # between two looks at the topics
_AWAY_SECONDS = 30.0  # a broker that has just started may not know a topic yet


class KnownTopics(Protocol):
    """The topics of the brokers: stream_runtime.kafka.Topics."""

    def partition_counts(self) -> Mapping[str, int]: ...

    def each_shape(self, topics: Collection[str], /) -> Mapping[str, TopicShape | CdcError]: ...


class AwayTopics:
    """Topics that were there, and that the brokers do not know now."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def is_gone(self, topic: str) -> bool:
        """Note that the topic is away. Whether it has been away for so long that it may have been deleted."""
        return self._clock() - self._since.setdefault(topic, self._clock()) >= _AWAY_SECONDS

    def came_back(self, topic: str) -> None:
        self._since.pop(topic, None)


class ChosenTopics:
    """The part of driver.Plans that finds topics. A job's planner is a subclass, and says which table a topic has.

    A topic with an error is not planned again before `retry`.
    """

    def __init__(
        self, known: KnownTopics, settings: ChosenTopicsSettings, faults: Faults, clock: Callable[[], float]
    ) -> None:
        self.errors: dict[str, CdcError] = {}
        self._known = known
        self._settings = settings
        self._faults = faults
        self._clock = clock
        self._shapes: dict[str, TopicShape] = {}
        self._away = AwayTopics(clock)
        self._next_look = -1.0

    @property
    def pending(self) -> set[str]:
        """No topic's plan takes time."""
        return set()

    def retry(self, streams: Collection[str]) -> None:
        """The next batch plans these topics again, as they are by then."""
        for topic in streams:
            if self.errors.pop(topic, None) is not None:
                self._shapes.pop(topic, None)
            self._next_look = -1.0

    def find_topics(self) -> list[str]:
        """The names of the topics that the settings choose. CdcError if the settings name none."""
        if not self._settings.topics:
            raise self._faults.setting_missing("topics", f"it names the topics to {self._faults.words.do}")
        return self.chosen_topics()

    def chosen_topics(self) -> list[str]:
        """The names of the topics that are there and are chosen."""
        return [name for name in sorted(self._known.partition_counts()) if self.is_chosen(name)]

    def is_chosen(self, topic: str) -> bool:
        """Whether the settings choose the topic."""
        own = self._settings
        return not topic.startswith("__") and matches(topic, own.topics) and not matches(topic, own.excluded_topics)

    def table_of(self, topic: str) -> str:
        """The name of the topic's table, which no other topic may have."""
        raise NotImplementedError

    def check_tables(self) -> None:
        """Raise CdcError if two topics have the same table."""
        for error in self._collisions(self.find_topics()).values():
            raise error

    def find_shapes(self) -> dict[str, TopicShape]:
        """The shapes of the topics to work on. CdcError for what concerns the whole job."""
        if self._clock() >= self._next_look:
            self._next_look = self._clock() + LOOK_SECONDS
            self._look()
        return dict(self._shapes)

    def _look(self) -> None:
        """Find topics that are new, and those that have changed."""
        chosen = self.find_topics()
        self._shapes = {topic: shape for topic, shape in self._shapes.items() if self.is_chosen(topic)}
        collisions = self._collisions(chosen)
        self.errors |= {topic: error for topic, error in collisions.items() if topic not in self._shapes}
        names = {*chosen, *self._shapes} - self.errors.keys()
        for topic, shape in self._known.each_shape(sorted(names)).items():
            if isinstance(shape, CdcError):
                self._miss(topic, shape)
            else:
                self._take(topic, shape)

    def _take(self, topic: str, shape: TopicShape) -> None:
        self._away.came_back(topic)
        known = self._shapes.get(topic)
        if known is not None and known.topic_id != shape.topic_id:
            self.errors[topic] = self._faults.topic_recreated(topic)
        else:
            self._shapes[topic] = shape

    def _miss(self, topic: str, error: CdcError) -> None:
        """A topic that cannot be described. One that is away for long is an error."""
        if topic in self._shapes:
            if self._away.is_gone(topic):
                self.errors[topic] = error
        elif error.code is not Code.KAFKA_UNREACHABLE:  # which is also a topic that does not exist yet
            self.errors[topic] = error

    def _collisions(self, topics: Collection[str]) -> dict[str, CdcError]:
        """The errors of topics that would have the same table."""
        by_table: dict[str, list[str]] = {}
        for topic in topics:
            by_table.setdefault(self.table_of(topic), []).append(topic)
        return {
            topic: self._faults.tables_collide(table, found)
            for table, found in by_table.items()
            for topic in found
            if len(found) > 1
        }
